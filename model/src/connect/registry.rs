//! How the registry finds the connector of a location, and its options.

use std::path::PathBuf;
use std::sync::Arc;

use super::{
    Connector, ConnectorOptions, ConnectorRegistry, Location, OpenError, OpenRequest, PathProbe, StoreIdentity,
    TrustOrigin, Url,
};
use crate::{Mode, Settings, Store};

/// A location, and the connector that it is for.
#[derive(Debug, Clone)]
pub struct ResolvedLocation {
    connector: Arc<dyn Connector>,
    location: Location,
}

impl ConnectorRegistry {
    /// One connector, which opens every path that no other one claims.
    pub fn new(default_path_connector: impl Connector) -> Self {
        ConnectorRegistry { connectors: vec![Arc::new(default_path_connector)], missing: Vec::new() }
    }

    /// No connectors, for stores that have none beneath them.
    pub fn empty() -> Self {
        ConnectorRegistry { connectors: Vec::new(), missing: Vec::new() }
    }

    /// Adds a connector; one of the same name is replaced.
    pub fn with_connector(mut self, connector: impl Connector) -> Self {
        let connector: Arc<dyn Connector> = Arc::new(connector);
        match self.connectors.iter_mut().find(|known| known.name() == connector.name()) {
            Some(known) => *known = connector,
            None => self.connectors.push(connector),
        }
        self
    }

    /// Says that a scheme needs a feature without which the library was built.
    pub fn with_missing_cargo_feature(mut self, scheme: &'static str, feature: &'static str) -> Self {
        self.missing.push((scheme, feature));
        self
    }

    /// The connectors, the one for unclaimed paths first.
    pub fn connectors(&self) -> impl Iterator<Item = &dyn Connector> {
        self.connectors.iter().map(|connector| &**connector)
    }

    /// The connector of this name.
    pub fn connector(&self, name: &str) -> Option<&Arc<dyn Connector>> {
        self.connectors.iter().find(|connector| connector.name() == name)
    }

    /// The schemes that can be opened.
    pub fn schemes(&self) -> Vec<&'static str> {
        self.connectors().flat_map(|connector| connector.schemes()).copied().collect()
    }

    /// The schemes that need a feature without which the library was built, and the features.
    pub fn missing_scheme_features(&self) -> &[(&'static str, &'static str)] {
        &self.missing
    }

    /// The connector for paths that no other one claims.
    pub fn default_path_connector(&self) -> Option<&Arc<dyn Connector>> {
        self.connectors.first()
    }

    /// The connector that a location is for. A URL whose scheme nobody has is a path, unless `//` follows the scheme.
    ///
    /// # Errors
    /// [`OpenError::UnknownScheme`], [`OpenError::MissingCargoFeature`], [`OpenError::AmbiguousUrlOrFile`],
    /// [`OpenError::ClaimedBySeveral`].
    pub fn resolve(&self, at: &Location, mode: Mode) -> Result<ResolvedLocation, OpenError> {
        let url = match at {
            Location::Path(path) => return self.resolve_path(Location::Path(path.clone()), mode),
            Location::Url(url) => url,
        };
        let Some(connector) = self.connector_of(url)? else {
            return self.resolve_path(Location::Path(url.text_as_path()), mode);
        };
        if !url.is_literal() && !url.has_authority() && url.text_as_path().symlink_metadata().is_ok() {
            let (text, rest) = (url.text_as_path().display().to_string(), url.encoded_hier_part());
            return Err(OpenError::AmbiguousUrlOrFile { text, url: format!("{}://{rest}", url.scheme()) });
        }
        Ok(ResolvedLocation { connector: connector.clone(), location: at.clone() })
    }

    /// The connector that has the scheme of a URL; `None` if nobody has it and the URL may be a path.
    ///
    /// # Errors
    /// [`OpenError::UnknownScheme`] if it cannot be a path, [`OpenError::MissingCargoFeature`].
    pub fn connector_of(&self, url: &Url) -> Result<Option<&Arc<dyn Connector>>, OpenError> {
        let scheme = url.scheme();
        let found = self.connectors.iter().find(|connector| connector.schemes().contains(&scheme));
        match (found, self.missing.iter().find(|(missing, _)| *missing == scheme)) {
            (Some(found), _) => Ok(Some(found)),
            (None, Some((_, feature))) => Err(OpenError::MissingCargoFeature { scheme: scheme.to_owned(), feature }),
            (None, None) if url.has_authority() => {
                Err(OpenError::UnknownScheme { scheme: scheme.to_owned(), known: self.schemes() })
            }
            (None, None) => Ok(None),
        }
    }

    fn resolve_path(&self, location: Location, mode: Mode) -> Result<ResolvedLocation, OpenError> {
        let unclaimed = |location| {
            let connector = self.connectors.first().cloned();
            let none = || OpenError::InvalidLocation("there is no store for paths".to_owned());
            Ok(ResolvedLocation { connector: connector.ok_or_else(none)?, location })
        };
        let (Some(path), false) = (location.as_path(), matches!(mode, Mode::Create | Mode::CreateNew)) else {
            return unclaimed(location);
        };
        let probe = PathProbe::new(path);
        let claims: Vec<_> = self.connectors.iter().skip(1).filter(|connector| connector.claims(&probe)).collect();
        match claims[..] {
            [] => unclaimed(location),
            [connector] => Ok(ResolvedLocation { connector: connector.clone(), location }),
            _ => Err(OpenError::ClaimedBySeveral(claims.iter().map(|connector| connector.name()).collect())),
        }
    }

    /// The options for a store: what the URL says, else `settings`, else the typed options of its connector, else the
    /// defaults. Options that `common_options` has are of every store, and are set there.
    ///
    /// # Errors
    /// [`OpenError::Setting`] if the store does not have one of them, [`OpenError::OptionsForUnknownConnector`] if typed options
    /// are for a connector that is not here; errors of the URL's query.
    pub fn resolve_options(
        &self,
        at: &ResolvedLocation,
        typed: &[Arc<dyn ConnectorOptions>],
        settings: &Settings,
        mut common_options: Option<&mut dyn ConnectorOptions>,
    ) -> Result<Box<dyn ConnectorOptions>, OpenError> {
        let known = |options: &Arc<dyn ConnectorOptions>| self.connectors().any(|c| c.name() == options.connector());
        if let Some(options) = typed.iter().find(|options| !known(options)) {
            let known = self.connectors().map(Connector::name).collect();
            return Err(OpenError::OptionsForUnknownConnector { connector: options.connector(), known });
        }
        let typed = typed.iter().find(|options| options.connector() == at.connector.name());
        let mut options = typed.map_or_else(|| at.connector.options(), |options| options.clone_options());
        let mut set = |name: &str, value: &str| match common_options.as_deref_mut() {
            Some(common) if common.visible_setting_descriptions().iter().any(|setting| setting.name == name) => {
                common.set(name, value).map_err(|error| error.with_connector(at.connector.name()))
            }
            Some(common) => {
                options.set(name, value).map_err(|error| error.with_known(common.visible_setting_descriptions()))
            }
            None => options.set(name, value),
        };
        for (name, value) in settings.iter() {
            set(name, value)?;
        }
        if let Location::Url(url) = &at.location {
            for (name, value) in url.query_settings()?.iter() {
                set(name, value)?;
            }
        }
        Ok(options)
    }
}

impl ResolvedLocation {
    /// A location that is known to be for this connector.
    pub fn new(connector: Arc<dyn Connector>, location: Location) -> Self {
        ResolvedLocation { connector, location }
    }

    /// The connector.
    pub fn connector(&self) -> &Arc<dyn Connector> {
        &self.connector
    }

    /// The location; a path, if it was a URL of a scheme that nobody has.
    pub fn location(&self) -> &Location {
        &self.location
    }

    /// Opens the store.
    ///
    /// # Errors
    /// As [`Connector::open`].
    pub fn open(&self, how: &OpenRequest<'_>) -> Result<Arc<dyn Store>, OpenError> {
        self.connector.open(&self.location, how)
    }

    /// As [`Connector::file_path`].
    pub fn file_path(&self) -> Option<PathBuf> {
        self.connector.file_path(&self.location)
    }

    /// As [`Connector::identity`].
    pub fn identity(&self) -> Option<StoreIdentity> {
        self.connector.identity(&self.location)
    }

    /// As [`Connector::trust_origin`].
    pub fn trust_origin(&self) -> TrustOrigin {
        self.connector.trust_origin(&self.location)
    }
}
