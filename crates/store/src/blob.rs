//! The name of a blob: the hash of its bytes.

use sha2::{Digest, Sha256};
use windlass_kernel::BlobRef;

/// The SHA-256 of `bytes` in lower-case hex, and how many there are.
pub fn blob_ref(bytes: &[u8]) -> BlobRef {
    BlobRef { hash: format!("{:x}", Sha256::digest(bytes)), bytes: bytes.len() as u64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_blob_is_named_by_its_content_alone() {
        let abc = blob_ref(b"abc");
        assert_eq!(abc.hash, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(abc.bytes, 3);
        assert_ne!(blob_ref(b"abd").hash, abc.hash);
    }
}
