//! An attribute as the file holds it.

use h5live_format::messages::AttributeMessage;

/// An attribute in its stored form.
pub(crate) struct StoredAttribute {
    pub message: AttributeMessage,
    pub creation_order: u16,
}
