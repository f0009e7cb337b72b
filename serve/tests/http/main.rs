//! The server over loopback, with a plain client.

mod access;
mod client;
mod confinement;
mod events;
mod grove_data;
mod grove_meta;
mod limits;
mod live;
