//! What arrives from the wire.
