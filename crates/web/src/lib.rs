//! Tools that reach the web: pages fetched behind an address check, and searches.
