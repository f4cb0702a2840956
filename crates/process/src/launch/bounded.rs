//! What a workspace's server is confined with, and the shape that it has by that: the same for one that is started and one that
//! a spare becomes.

use std::ffi::OsString;
use std::os::fd::OwnedFd;

use super::confining::{Bounds, Confined};
use super::layout::Layout;
use super::shape::{Shape, Wrapper};
use super::{LaunchError, LaunchSpec};

/// The bounds of a workspace's server, where there are to be any.
pub(super) struct Bounded {
    bounds: Option<Bounds>,
    prefix: Vec<OsString>,
}

impl Bounded {
    pub(super) fn of(spec: &LaunchSpec, layout: &Layout) -> Result<Self, LaunchError> {
        let bounds = spec.confining.as_ref().map(|confining| confining.bounds(&spec.program, layout, &spec.path));
        let bounds = bounds.transpose()?;
        let prefix = bounds.as_ref().map(Bounds::prefix).unwrap_or_default();
        Ok(Self { bounds, prefix })
    }

    pub(super) fn is_confining(&self) -> bool {
        self.bounds.is_some()
    }

    pub(super) fn has_outer(&self) -> bool {
        self.bounds.as_ref().is_some_and(Bounds::has_outer)
    }

    pub(super) fn told(&self) -> Option<Confined> {
        self.bounds.as_ref().map(Bounds::told)
    }

    pub(super) fn shape<'a>(
        &'a self,
        spec: &'a LaunchSpec,
        layout: &'a Layout,
        port: u16,
        nonce: &'a str,
    ) -> Shape<'a> {
        Shape {
            program: &spec.program,
            version: &spec.version,
            layout,
            path: spec.path.clone(),
            port,
            nonce,
            wrapper: spec.confining.as_ref().map(|confining| Wrapper {
                program: confining.wrapper.path(),
                has_domain: self.bounds.as_ref().is_some_and(Bounds::has_domain),
                outer: &self.prefix,
                owner_home: &confining.owner_home,
            }),
        }
    }

    /// Each with the number that the server has it under.
    pub(super) fn into_descriptors(self) -> Vec<(OwnedFd, i32)> {
        self.bounds.map(Bounds::into_descriptors).unwrap_or_default()
    }
}
