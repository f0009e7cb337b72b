//! The connector of files that an `h5live serve` serves.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use h5live_model::{
    Capabilities, ChunkEncodedBy, ChunkReadStrategy, Connector, ConnectorOptions, ConsistencyScope, DurabilitySupport,
    Error as ModelError, LinkedStoreRole, Location, LocationWatch, Maintenance, Mode, Name, OpenError, OpenRequest,
    PartialWrites, PathProbe, SessionInfo, SmallWritesStagedBy, Store, StoreFeatures, StoreIdentity, StoreSizeLimits,
    TrustOrigin,
};
use hyper::header::HeaderValue;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use crate::client::ServedClient;
use crate::dataset::MAX_IN_FLIGHT;
use crate::http::{HttpClient, TlsSettings};
use crate::location::{SCHEME, ServedLocation, TLS_SCHEME};
use crate::options::Served;
use crate::protocol::{LinksRequest, SessionAnswer};
use crate::store::ServedStore;

/// The variable with the token of servers.
const TOKEN_VARIABLE: &str = "H5LIVE_TOKEN";
/// Bytes between two pieces that are better read than left out.
const READ_GAP_BYTES: u64 = 16 << 10;
/// How long a server that has no room is tried again before a file of it is open.
const OPEN_PATIENCE: Duration = Duration::from_secs(2);

/// Opens files that an `h5live serve` serves, for reading and following.
#[derive(Debug, Clone, Copy, Default)]
pub struct ServedConnector;

/// What a request shows of who asks.
fn authorization(at: &ServedLocation, options: &Served) -> Option<HeaderValue> {
    // Files to which links lead are asked for as those that lead to them.
    static KNOWN: OnceLock<Mutex<FxHashMap<String, HeaderValue>>> = OnceLock::new();
    let known = KNOWN.get_or_init(Mutex::default);
    let text = match (&at.user, options.token.is_empty()) {
        (Some(user), _) => Some(format!("Basic {}", STANDARD.encode(decoded(user)))),
        (None, false) => Some(format!("Bearer {}", options.token)),
        (None, true) => None,
    };
    if let Some(mut value) = text.and_then(|text| HeaderValue::from_str(&text).ok()) {
        value.set_sensitive(true);
        known.lock().insert(at.server_origin(), value.clone());
        return Some(value);
    }
    if let Some(value) = known.lock().get(&at.server_origin()) {
        return Some(value.clone());
    }
    let token = std::env::var(TOKEN_VARIABLE).ok().filter(|token| !token.is_empty())?;
    let mut value = HeaderValue::from_str(&format!("Bearer {token}")).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// The file with certificates that are trusted beside those of the system; nothing if there is none.
fn certificate(at: &ServedLocation, options: &Served) -> String {
    // As for who asks: links lead to files of the same server.
    static KNOWN: OnceLock<Mutex<FxHashMap<String, String>>> = OnceLock::new();
    let mut known = KNOWN.get_or_init(Mutex::default).lock();
    if !options.certificate.is_empty() {
        known.insert(at.server_origin(), options.certificate.clone());
    }
    known.get(&at.server_origin()).cloned().unwrap_or_default()
}

/// A user without the escapes of URLs.
fn decoded(user: &str) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = user.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        let digit = |at: usize| after.get(at).and_then(|digit| char::from(*digit).to_digit(16));
        match (byte, digit(0), digit(1)) {
            (b'%', Some(high), Some(low)) => {
                out.push((high * 16 + low) as u8);
                rest = after.get(2..).unwrap_or_default();
            }
            _ => {
                out.push(*byte);
                rest = after;
            }
        }
    }
    out
}

impl Connector for ServedConnector {
    fn name(&self) -> &'static str {
        SCHEME
    }

    fn schemes(&self) -> &'static [&'static str] {
        &[SCHEME, TLS_SCHEME]
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            features: StoreFeatures::all().without(StoreFeatures::MAPS),
            partial_writes: PartialWrites::Whole,
            staging: SmallWritesStagedBy::Caller,
            encoding: ChunkEncodedBy::Pipeline,
            reads: ChunkReadStrategy::Batched {
                preferred_reads_in_flight: MAX_IN_FLIGHT,
                max_gap_bytes: READ_GAP_BYTES,
            },
            commit: ConsistencyScope::Object,
            view: ConsistencyScope::Object,
            durability: DurabilitySupport::Never,
            supports_live_reads: true,
            limits: StoreSizeLimits::NONE,
        }
    }

    fn options(&self) -> Box<dyn ConnectorOptions> {
        Box::new(Served::default())
    }

    fn claims(&self, _: &PathProbe<'_>) -> bool {
        false
    }

    fn open(&self, at: &Location, how: &OpenRequest<'_>) -> Result<Arc<dyn Store>, OpenError> {
        let options = how.downcast_options::<Served>()?;
        let served = ServedLocation::of(at)?;
        if how.mode.writes() {
            return Err(OpenError::Store(ModelError::Unsupported("writing a file of an h5live server")));
        }
        let tls = match served.is_tls {
            true => TlsSettings::with_system_and_pem_roots(&certificate(&served, options))
                .map_err(OpenError::InvalidLocation)?,
            false => TlsSettings::default(),
        };
        let (authorization, file) = (authorization(&served, options), served.name.clone());
        let http = HttpClient::new(served, authorization, options.timeout, tls);
        let max_answer = how.max_allocation.bytes();
        let client = Arc::new(ServedClient::new(http, &file, max_answer, options.reconnect));
        let opened: SessionAnswer = client
            .call_with_max_retry_time("session", &mut LinksRequest::default(), OPEN_PATIENCE)
            .map_err(|error| OpenError::Store(error.into()))?;
        let capabilities = Capabilities {
            features: opened.features.without(StoreFeatures::MAPS),
            encoding: opened.encoding,
            supports_live_reads: how.mode == Mode::SwmrRead,
            ..self.capabilities()
        };
        let session = SessionInfo {
            location: Some(at.clone()),
            vlen_and_reference_sizes: opened.vlen_and_reference_sizes,
            creation_settings: opened.creation_settings.clone(),
            ..SessionInfo::new(SCHEME, how.mode, opened.root, capabilities)
        };
        Ok(Arc::new(ServedStore::new(client, session, &opened)))
    }

    /// A file beside the one that names it, of the same server.
    fn linked_store_candidates(&self, base: Option<&Location>, name: &Name, _: LinkedStoreRole) -> Vec<Location> {
        let base = base.and_then(|base| ServedLocation::of(base).ok());
        let beside = base.and_then(|base| base.sibling_url(name.as_str()?));
        beside.into_iter().map(Location::from).collect()
    }

    fn file_path(&self, _: &Location) -> Option<PathBuf> {
        None
    }

    fn file_location(&self, _: &Path) -> Option<Location> {
        None
    }

    fn trust_origin(&self, at: &Location) -> TrustOrigin {
        TrustOrigin::Named(ServedLocation::of(at).map(|at| at.server_origin()).unwrap_or_default())
    }

    fn identity(&self, at: &Location) -> Option<StoreIdentity> {
        let at = ServedLocation::of(at).ok()?;
        let name: Vec<_> = at.name.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
        Some(StoreIdentity(format!("{}/{}", at.server_origin(), name.join("/")).into_bytes().into()))
    }

    fn maintenance(&self) -> Option<&dyn Maintenance> {
        None
    }

    fn watch(&self, _: &Location) -> Option<Box<dyn LocationWatch>> {
        None
    }
}
