//! Which commits wait until they outlast a power failure.

use h5live_model::{DurabilitySupport, SettingValue, name_of_value, value_with_name};

/// Which commits wait for the disk, or for the object store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SyncPolicy {
    /// All.
    Always,
    /// Durable ones. After a power failure there is the state of the last durable commit, or a later one.
    #[default]
    DurableOnly,
    /// None, and no commit is durable. After a power failure the store may be lost.
    Never,
}

const POLICIES: [(SyncPolicy, &str); 3] =
    [(SyncPolicy::Always, "always"), (SyncPolicy::DurableOnly, "durable"), (SyncPolicy::Never, "never")];

impl SyncPolicy {
    /// What sessions with this policy promise.
    pub const fn durability(self) -> DurabilitySupport {
        match self {
            SyncPolicy::Always => DurabilitySupport::Always,
            SyncPolicy::DurableOnly => DurabilitySupport::OnRequest,
            SyncPolicy::Never => DurabilitySupport::Never,
        }
    }
}

impl SettingValue for SyncPolicy {
    const FORM: &'static str = "always|durable|never";

    fn from_text(text: &str) -> Option<Self> {
        value_with_name(&POLICIES, text)
    }

    fn to_text(&self) -> String {
        name_of_value(&POLICIES, self)
    }
}
