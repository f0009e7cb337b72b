//! Deleting objects.

use object_store::ObjectStoreExt;

use crate::client::{ClientState, ObjectClient};
use crate::counts::RequestKind;
use crate::error::{ObjectError, Result};
use crate::wave::InFlightLimits;

impl ObjectClient {
    /// Deletes an object. That it is not there is no error: an earlier attempt may have deleted it.
    ///
    /// # Errors
    /// Those of the object store.
    pub fn delete(&self, key: &str) -> Result<()> {
        let key = key.to_owned();
        self.spawn_and_wait(|state| async move { state.remove(&key).await })
    }

    /// Deletes many objects in any order.
    ///
    /// # Errors
    /// The first one. Any of the others may have been deleted then.
    pub fn delete_many<E: From<ObjectError>>(
        &self,
        keys: impl IntoIterator<Item = String>,
        limits: InFlightLimits,
    ) -> std::result::Result<(), E> {
        let jobs = keys.into_iter().map(|key| {
            let state = self.0.clone();
            (0, async move { state.remove(&key).await })
        });
        self.run_wave(jobs, limits, &mut |_, ()| Ok(()))
    }
}

impl ClientState {
    async fn remove(&self, key: &str) -> Result<()> {
        let path = self.parse_key(key)?;
        let delete = |_| async { self.store.delete(&path).await };
        match self.request_with_retries(RequestKind::Delete, |_| false, delete).await {
            Err(failure) if matches!(failure.error, object_store::Error::NotFound { .. }) => Ok(()),
            done => done.map_err(|failure| self.error(key, &failure)),
        }
    }
}
