//! From a location to a store: locations, connectors, their options, and the registry that lists them.

mod connector;
mod error;
mod location;
mod registry;
mod setting;

pub use connector::{
    Connector, ConnectorRegistry, LinkedStoreRole, LocationWatch, Maintenance, OpenRequest, PathProbe, StoreIdentity,
    TrustOrigin,
};
pub use error::OpenError;
pub use location::{Location, Url, path_from_bytes};
pub use registry::ResolvedLocation;
pub use setting::{
    ConnectorOptions, SettingDescription, SettingError, SettingValue, name_of_value, parse_setting, value_with_name,
};

#[cfg(test)]
mod tests;
