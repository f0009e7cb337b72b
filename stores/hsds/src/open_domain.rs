//! Opening a domain, and making one.

use std::sync::atomic::AtomicBool;

use h5live_model::{Mode, Result, SessionInfo};
use parking_lot::RwLock;

use crate::commit;
use crate::decoded_chunk_cache::DecodedChunkCache;
use crate::engine::{ChunkBatchingEngine, ObjectEngine};
use crate::error::{HsdsError, damaged_object_error, invalid_or_unsupported_error};
use crate::holders::VarLenTokenTable;
use crate::layout::{
    AclRight, DomainDocument, DomainId, MODEL_VLEN_AND_REFERENCE_SIZES, ObjectDocument, ShardingThreshold,
    check_domain_path,
};
use crate::random::random;
use crate::session::{CONNECTOR, HsdsOpenRequest, HsdsSession, capabilities, domain_document_key, unix_seconds_now};
use crate::small_chunk_read_ahead::SmallChunkReadAhead;
use crate::state::{DomainToReplace, SessionState};

/// The part of `metadata_cache` that stored elements may take, which tokens lead to.
const ELEMENT_SHARE: u64 = 2;
/// The part that decoded chunks may take between looking one up and reading it.
const CHUNK_SHARE: u64 = 8;
/// What a document counts as (bytes).
const DOCUMENT_BYTES: u64 = 2 << 10;
/// So many documents are always kept: those on the way to an object.
const MIN_DOCUMENTS: usize = 64;

/// A new root for a domain, whose document was there before as the folder of others or not at all.
fn with_new_root(document: Option<DomainDocument>, owner: &str) -> Result<(DomainId, DomainDocument)> {
    let (root, now) = (DomainId(random()?), unix_seconds_now());
    let document = document.map(|document| document.with_domain_id(root, now));
    Ok((root, document.unwrap_or_else(|| DomainDocument::new(Some(root), owner, now))))
}

impl HsdsSession {
    /// Opens a domain, or makes it.
    ///
    /// # Errors
    /// [`HsdsError::NoDomain`], [`HsdsError::IsFolder`], [`HsdsError::AlreadyExists`], [`HsdsError::InvalidDomainPath`], and those of the engine.
    pub fn open(engine: Box<dyn ObjectEngine>, request: &HsdsOpenRequest) -> Result<Self> {
        check_domain_path(&request.domain)
            .map_err(|why| HsdsError::InvalidDomainPath { domain: request.domain.clone(), why })?;
        let key = domain_document_key(&request.domain);
        let found = engine.get(&key)?;
        let (bytes, tag) = found.map(|found| (found.bytes, found.tag)).unzip();
        let document = bytes.as_deref().map(DomainDocument::parse).transpose().map_err(damaged_object_error(&key))?;
        let old =
            document.as_ref().map(DomainDocument::domain_id).transpose().map_err(damaged_object_error(&key))?.flatten();
        let shown = || format!("/{}", request.domain);
        let makes = matches!(request.mode, Mode::Create | Mode::CreateNew);
        let (domain, document) = match (document, old) {
            (_, Some(_)) if request.mode == Mode::CreateNew => return Err(HsdsError::AlreadyExists(shown()).into()),
            (Some(document), Some(root)) if !makes => (root, document),
            (None, _) if !makes => return Err(HsdsError::NoDomain(shown()).into()),
            (Some(_), None) if !makes => return Err(HsdsError::IsFolder(shown()).into()),
            (document, _) => with_new_root(document, &request.new_domain_owner)?,
        };
        let mut described = SessionInfo::new(CONNECTOR, request.mode, domain.root(), capabilities(engine.durability()));
        described.vlen_and_reference_sizes = MODEL_VLEN_AND_REFERENCE_SIZES;
        let share = |part: u64| usize::try_from(request.cache_bytes / part).unwrap_or(usize::MAX);
        let session = HsdsSession {
            session_info: described,
            engine: ChunkBatchingEngine::new(engine),
            domain,
            domain_path: request.domain.clone(),
            acl_user: request.acl_user.clone(),
            sharding: ShardingThreshold { above: request.shard_above },
            max_cached_documents: share(DOCUMENT_BYTES).max(MIN_DOCUMENTS),
            max_allocation: request.max_allocation,
            filter_engine: request.filter_engine.clone(),
            varlen_tokens: VarLenTokenTable::new(share(ELEMENT_SHARE)),
            decoded_chunks: DecodedChunkCache::new(share(CHUNK_SHARE)),
            chunks_ahead: SmallChunkReadAhead::default(),
            state: RwLock::new(SessionState::new(document, tag)),
            is_closed: AtomicBool::new(false),
            chunk_writes: RwLock::new(()),
        };
        if makes && session.state.read().domain.owner().is_some_and(|owner| owner != request.new_domain_owner) {
            // Somebody else's domain is replaced.
            session.check_right(None, AclRight::Delete)?;
        }
        if makes
            && old.is_none()
            && let Err(refused) = check_create_right(&session.engine, session.acl_user.as_deref(), &request.domain)
        {
            // Of what is refused, nothing is left.
            let _ = session.engine.close_never_created();
            return Err(refused);
        }
        if makes {
            let replaced = old.zip(bytes).map(|(id, document_bytes)| DomainToReplace { id, document_bytes });
            session.create(request, replaced)?;
        } else {
            session.document(domain.root())?;
        }
        Ok(session)
    }

    fn create(&self, request: &HsdsOpenRequest, old: Option<DomainToReplace>) -> Result<()> {
        let root = ObjectDocument::new(self.domain, self.domain.root(), &request.root, None, unix_seconds_now())
            .map_err(invalid_or_unsupported_error)?;
        let mut state = self.state.write();
        state.insert_new(root);
        state.reference_counts = Some(Default::default());
        state.maybe_missing_parents = parents(&request.domain);
        state.new_folder_owner.clone_from(&request.new_domain_owner);
        state.is_domain_changed = true;
        state.is_draft = request.creates_draft;
        // The first commit replaces what is there: until then, nothing is lost.
        let is_seen_at_once = old.is_none() && !request.creates_draft;
        if !is_seen_at_once {
            for id in old.iter().map(|old| old.id).chain([self.domain]) {
                let prefix = id.key_prefix_without_slash();
                self.engine.claim(&prefix)?;
                state.claimed_prefixes.push(prefix);
            }
        }
        state.domain_to_replace = old;
        if is_seen_at_once { commit::commit_objects_and_new_domain(self, &mut state) } else { Ok(()) }
    }
}

/// Refuses a new domain if a user may not make one in its folder: the innermost one that is there, up to the top of the bucket.
/// Without a folder, or a user, everything is allowed.
///
/// # Errors
/// [`HsdsError::AccessDenied`], [`HsdsError::DamagedObject`], and those of the engine.
pub(crate) fn check_create_right(engine: &dyn ObjectEngine, user: Option<&str>, domain: &str) -> Result<()> {
    let Some(user) = user else { return Ok(()) };
    let top = Some(String::new()).filter(|_| !domain.is_empty());
    for folder in top.into_iter().chain(parents(domain)).rev() {
        let key = domain_document_key(&folder);
        let Some(found) = engine.get(&key)? else { continue };
        let document = DomainDocument::parse(&found.bytes).map_err(damaged_object_error(&key))?;
        if document.access(user).has(AclRight::Create) {
            return Ok(());
        }
        let (user, object) = (user.to_owned(), format!("/{folder}"));
        return Err(HsdsError::AccessDenied { user, right: AclRight::Create.name(), object }.into());
    }
    Ok(())
}

/// The folders in which a domain lies, the outermost one first.
pub(crate) fn parents(domain: &str) -> Vec<String> {
    domain.match_indices('/').filter_map(|(at, _)| domain.get(..at)).map(str::to_owned).collect()
}
