//! The NIC registers that determine which software drives the device: the first words of the PCI configuration space,
//! and the interrupt mask.
//!
//! ```text
//!   0x00  vendor ID (16 bits)    0x02  device ID (16 bits)
//!   0x04  command   (16 bits)    0x06  status    (16 bits)
//! ```

use crate::kernel::Int;

/// Offset of the command register in bytes.
pub const COMMAND: u8 = 0x04;
/// Bit 10 of the command register, Interrupt Disable: the device raises no interrupt.
pub const INTERRUPT_DISABLE: u16 = 1 << 10;
/// Writable bits of the command register: 0 to 10.
const WRITABLE: u16 = (1 << 11) - 1;

/// Owner of the device: the software that drives it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Owner {
    /// A driver of the kernel.
    #[default]
    Kernel,
    /// A process that has the device's registers and its memory mapped (uio_pci_generic).
    Userspace,
}

/// Configuration space and interrupt registers of a NIC.
#[derive(Clone, Debug)]
pub struct NicRegisters {
    vendor: u16,
    device: u16,
    command: u16,
    status: u16,
    /// Causes that are unmasked, and causes that are pending.
    mask: u32,
    pending: u32,
    owner: Owner,
}

impl NicRegisters {
    /// Registers of a device that the kernel drives, with all causes unmasked.
    pub fn new(vendor: u16, device: u16) -> NicRegisters {
        NicRegisters { vendor, device, command: 0, status: 0, mask: u32::MAX, pending: 0, owner: Owner::Kernel }
    }

    fn byte(&self, at: u8) -> u8 {
        let word = match at & !1 {
            0x00 => self.vendor,
            0x02 => self.device,
            COMMAND => self.command,
            0x06 => self.status,
            _ => 0,
        };
        word.to_le_bytes()[usize::from(at & 1)]
    }

    /// Reads `N` bytes of the configuration space from offset `at` on, in little-endian order.
    pub fn read_config<const N: usize>(&self, at: u8) -> [u8; N] {
        std::array::from_fn(|i| self.byte(at + i.to_u8()))
    }

    /// Writes `bytes` to the configuration space from offset `at` on. Identities and status keep their values.
    pub fn write_config(&mut self, at: u8, bytes: &[u8]) {
        for (i, b) in (at..).zip(bytes) {
            let mut command = self.command.to_le_bytes();
            if let Some(part) = command.get_mut(usize::from(i.wrapping_sub(COMMAND))) {
                *part = *b;
                self.command = u16::from_le_bytes(command) & WRITABLE;
            }
        }
    }

    /// Interrupt mask: one bit per cause, 1 for unmasked.
    pub fn mask(&self) -> u32 {
        self.mask
    }

    /// Sets the mask of interrupt causes; a set bit unmasks its cause.
    pub fn set_mask(&mut self, mask: u32) {
        self.mask = mask;
    }

    /// Makes `causes` pending; returns whether they raise an interrupt.
    pub fn raise(&mut self, causes: u32) -> bool {
        self.pending |= causes;
        self.interrupts()
    }

    /// Whether an interrupt is asserted: a pending cause is unmasked, and interrupts are not disabled.
    pub fn interrupts(&self) -> bool {
        self.command & INTERRUPT_DISABLE == 0 && self.pending & self.mask != 0
    }

    /// Clears the pending causes and returns them.
    pub fn acknowledge(&mut self) -> u32 {
        std::mem::take(&mut self.pending)
    }

    /// Software that drives the device.
    pub fn owner(&self) -> Owner {
        self.owner
    }

    /// Gives the device to a process through the generic driver, which disables the device's interrupts first.
    ///
    /// # Errors
    /// Returns one sentence when interrupts do not stay disabled: a device without bit 10 cannot be bound.
    pub fn bind_to_userspace(&mut self) -> Result<(), String> {
        let command = u16::from_le_bytes(self.read_config(COMMAND)) | INTERRUPT_DISABLE;
        self.write_config(COMMAND, &command.to_le_bytes());
        let [high] = self.read_config(COMMAND + 1);
        if u16::from(high) << 8 & INTERRUPT_DISABLE == 0 {
            return Err("the device cannot disable its interrupts, which a driver in userspace needs".into());
        }
        self.owner = Owner::Userspace;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nic() -> NicRegisters {
        NicRegisters::new(0x8086, 0x1075)
    }

    /// Offset 0x00 has the device ID in bits 31:16 and the vendor ID in bits 15:0, offset 0x04 has Status in bits 31:16
    /// and Command in bits 15:0; bit 10 of Command suppresses the device's interrupts.
    #[test]
    fn bit_ten_of_the_command_register_suppresses_interrupts() {
        let mut r = nic();
        assert_eq!(u32::from_le_bytes(r.read_config(0x00)), 0x1075_8086);
        assert!(r.raise(1 << 7));
        r.write_config(COMMAND, &0x0400u16.to_le_bytes());
        assert!(!r.interrupts() && !r.raise(1 << 4));
        assert_eq!(u32::from_le_bytes(r.read_config(COMMAND)), 0x0000_0400);
        r.write_config(COMMAND, &0u16.to_le_bytes());
        assert!(r.interrupts(), "what was pending still is");
        assert_eq!(r.acknowledge(), 1 << 7 | 1 << 4);
        assert!(!r.interrupts());
    }

    /// The Command register accepts 8-bit accesses, in particular to its upper byte at offset 0x05.
    #[test]
    fn the_command_register_is_read_and_written_by_bytes() {
        let mut r = nic();
        r.write_config(0x04, &[0x07]);
        r.write_config(0x05, &[0x04]);
        assert_eq!((r.read_config(0x04), r.read_config(0x05)), ([0x07], [0x04]));
        assert_eq!(u16::from_le_bytes(r.read_config(COMMAND)), 0x0407);
        r.write_config(0x05, &[0xff]);
        assert_eq!(r.read_config(0x05), [0x07], "bits above 10 are reserved");
        for (at, before) in [(0x00, [0x86]), (0x03, [0x10]), (0x06, [0x00])] {
            r.write_config(at, &[0xff]);
            assert_eq!(r.read_config(at), before, "offset {at} is read-only");
        }
    }

    /// A write sets the mask, a read returns it, and masked causes raise no interrupt.
    #[test]
    fn a_masked_cause_raises_no_interrupt() {
        let mut r = nic();
        r.set_mask(0b10);
        assert_eq!(r.mask(), 0b10);
        assert!(!r.raise(0b01));
        assert!(r.raise(0b10));
    }

    /// A NIC is owned by the kernel or by userspace; binding it to userspace requires Interrupt Disable.
    #[test]
    fn a_device_that_userspace_drives_raises_no_interrupt() {
        let mut r = nic();
        assert_eq!(r.owner(), Owner::Kernel);
        r.bind_to_userspace().expect("it has bit 10");
        assert_eq!(r.owner(), Owner::Userspace);
        assert!(!r.raise(u32::MAX));
    }
}
