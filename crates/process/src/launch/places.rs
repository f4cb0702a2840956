//! The directories that a server has, each with the lock that keeps a second server from them.

use std::sync::{Mutex, PoisonError};

use host::lock::FileLock;

use super::layout::Layout;

/// A data directory and its lock.
pub(crate) struct Place {
    pub(crate) layout: Layout,
    pub(crate) lock: FileLock,
}

/// Those of one process: one, and for a spare that was given a workspace that workspace's too.
pub(crate) struct Places(Mutex<Option<Vec<Place>>>);

impl Places {
    pub(crate) fn new(place: Place) -> Self {
        Self(Mutex::new(Some(vec![place])))
    }

    /// One more; false, and cleared, when the process has ended already.
    pub(crate) fn add(&self, place: Place) -> bool {
        match &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(places) => {
                places.push(place);
                true
            }
            None => {
                place.layout.remove_temporary();
                false
            }
        }
    }

    /// Removes what lives no longer than the process. The locks are to be held until nothing is left, so that no second
    /// server starts on the same directories.
    pub(crate) fn clear(&self) -> Vec<FileLock> {
        let places = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        let cleared = places.into_iter().flatten().map(|place| {
            place.layout.remove_temporary();
            place.lock
        });
        cleared.collect()
    }
}
