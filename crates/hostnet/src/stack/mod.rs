//! The software between NIC and application.

pub mod qp;
pub mod tcp;
