//! The option that allows values to change.

use h5live::ConversionPolicy;

/// Whether values may change.
#[derive(Debug, Clone, Copy, clap::Args)]
pub struct ConversionArgs {
    /// Take the nearest value that a type has instead of an error: out of range, the smallest or the largest one;
    /// fractions are cut, and so are texts
    #[arg(long = "lossy")]
    is_lossy: bool,
}

impl ConversionArgs {
    /// The rule for values that a type does not have.
    pub fn conversion(self) -> ConversionPolicy {
        if self.is_lossy { ConversionPolicy::Lossy } else { ConversionPolicy::Checked }
    }
}
