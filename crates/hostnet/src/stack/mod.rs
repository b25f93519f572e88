//! The software between NIC and application.

pub mod block;
pub mod qp;
pub mod tcp;
