//! Pictures and documents: which of them a request shows, and what stands in the place of the others.

use crate::Quirk;
use crate::endpoint::Target;
use bytes::Bytes;
use std::collections::HashMap;
use windlass_kernel::{BlobRef, ContentBlock};

/// What a model takes beside words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Takes {
    images: bool,
    pdfs: bool,
}

/// The pictures and documents of a request, as one model takes them.
#[derive(Clone, Copy)]
pub(crate) struct Media<'b> {
    takes: Takes,
    blobs: &'b HashMap<String, Bytes>,
}

/// A picture or document as it goes out.
pub(crate) enum Shown<'b> {
    Image {
        media_type: &'b str,
        bytes: &'b Bytes,
    },
    Document {
        media_type: &'b str,
        bytes: &'b Bytes,
        title: Option<&'b str>,
    },
    /// What is said in its place: one that cannot be sent must not have every later request refused.
    Words(String),
}

impl Takes {
    pub(crate) fn of(target: &Target) -> Takes {
        Takes { images: !target.has(Quirk::NoImages), pdfs: !target.has(Quirk::NoPdfs) }
    }

    /// Two bits that tell one encoding from another; 0 where everything is taken.
    pub(crate) fn bits(self) -> u32 {
        u32::from(!self.images) | u32::from(!self.pdfs) << 1
    }

    pub(crate) fn among(self, blobs: &HashMap<String, Bytes>) -> Media<'_> {
        Media { takes: self, blobs }
    }
}

impl<'b> Media<'b> {
    /// None if `block` is neither picture nor document.
    pub(crate) fn show(&self, block: &'b ContentBlock) -> Option<Shown<'b>> {
        let (images, pdfs) = (self.takes.images, self.takes.pdfs);
        Some(match block {
            ContentBlock::Image { media_type, blob } if !images => refused("image", media_type, blob, "images"),
            ContentBlock::Document { media_type, blob, .. } if !pdfs => refused("document", media_type, blob, "PDFs"),
            ContentBlock::Image { media_type, blob } => match self.blobs.get(&blob.hash) {
                Some(bytes) => Shown::Image { media_type, bytes },
                None => missing("image", media_type, blob),
            },
            ContentBlock::Document { media_type, blob, title } => match self.blobs.get(&blob.hash) {
                Some(bytes) => Shown::Document { media_type, bytes, title: title.as_deref() },
                None => missing("document", media_type, blob),
            },
            _ => return None,
        })
    }

    /// Whether `block` is a picture or document that goes out as what it is.
    pub(crate) fn shows(&self, block: &'b ContentBlock) -> bool {
        matches!(self.show(block), Some(Shown::Image { .. } | Shown::Document { .. }))
    }
}

fn refused(what: &str, media_type: &str, blob: &BlobRef, kind: &str) -> Shown<'static> {
    Shown::Words(format!("[{what} ({media_type}, {} bytes): this model takes no {kind}]", blob.bytes))
}

/// The bytes are lost: the session goes on without them.
fn missing(what: &str, media_type: &str, blob: &BlobRef) -> Shown<'static> {
    Shown::Words(format!("[{what} ({media_type}, {} bytes) that is no longer available]", blob.bytes))
}
