//! The server over loopback, with a plain client.

mod access;
mod client;
mod confinement;
mod events;
mod grove_data;
mod grove_meta;
mod growing;
mod hostile_clients;
mod hostile_requests;
mod hsds_buckets;
mod hsds_domains;
mod hsds_objects;
mod hsds_values;
mod limits;
mod live;
mod openapi;
mod paired_store;
mod search;
mod store_client;
mod store_conformance;
mod store_messages;
#[cfg(feature = "tls")]
mod tls;
mod users;
