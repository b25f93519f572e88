//! Recorder of real programs.
