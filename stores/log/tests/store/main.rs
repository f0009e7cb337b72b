//! The log store as its users see it. One program: each costs seconds to link.

mod background;
mod closing;
mod conformance;
mod damage;
mod death;
mod deleted;
mod gather;
mod hostile;
mod joined;
mod log_vol;
mod log_vol_death;
#[path = "../common/random.rs"]
mod random;
