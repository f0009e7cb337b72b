//! Maps: their description, their keys, and the order of keys.

mod key;
mod key_order;
mod spec;

pub use key::{MapKey, MapKeyBuf};
pub use key_order::OrderPreservingKeyCodec;
pub use spec::MapSpec;
