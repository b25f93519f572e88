//! Indirect functions, such as the C library's memcpy. Their symbol is that of a resolver, which chooses an implementation; the
//! loader writes the address of that one into words of the files that call the function.

use object::elf::{self, FileHeader64};
use object::read::elf::{ElfFile64, Rela, SectionHeader, Sym, SymbolTable};
use object::{LittleEndian, Object, ObjectSegment};

type Table<'a> = SymbolTable<'a, FileHeader64<LittleEndian>>;

/// A word that the loader writes: its address in the file, and what the file has there.
pub(crate) type Word = (u64, u64);

/// Address in a file of the resolver of the indirect function `name`.
pub(crate) fn resolver(bytes: &[u8], name: &str) -> Option<u64> {
    let file = ElfFile64::<LittleEndian>::parse(bytes).ok()?;
    let endian = file.endian();
    let tables = [file.elf_dynamic_symbol_table(), file.elf_symbol_table()];
    let found = tables.iter().find_map(|table| {
        let is = |s: &&elf::Sym64<LittleEndian>| {
            s.st_type() == elf::STT_GNU_IFUNC && !s.is_undefined(endian) && named(table, s, name)
        };
        table.iter().find(is)
    });
    found.map(|s| s.st_value(endian))
}

/// Words of a file into which the loader writes the implementation of `name`. `resolver` is the address of the resolver if this
/// is its file.
pub(crate) fn words(bytes: &[u8], name: &str, resolver: Option<u64>) -> Vec<Word> {
    let Ok(file) = ElfFile64::<LittleEndian>::parse(bytes) else { return Vec::new() };
    let (endian, sections) = (file.endian(), file.elf_section_table());
    let initial = |address: u64| {
        let found = file.segments().find_map(|s| s.data_range(address, 8).ok().flatten());
        found.and_then(|b| b.try_into().ok()).map_or(0, u64::from_le_bytes)
    };
    let mut words = Vec::new();
    for section in sections.iter() {
        let Ok(Some((relocations, link))) = section.rela(endian, bytes) else { continue };
        let symbols = sections.symbol_table_by_index(endian, bytes, link).ok();
        let of_name = |r: &elf::Rela64<LittleEndian>| {
            let (symbols, index) = (symbols.as_ref()?, r.symbol(endian, false)?);
            Some(named(symbols, symbols.symbol(index).ok()?, name))
        };
        let filled = relocations.iter().filter(|r| match r.r_type(endian, false) {
            elf::R_X86_64_IRELATIVE => resolver.is_some_and(|to| to == r.r_addend(endian) as u64),
            elf::R_X86_64_GLOB_DAT | elf::R_X86_64_JUMP_SLOT => of_name(r) == Some(true),
            _ => false,
        });
        words.extend(filled.map(|r| r.r_offset(endian)).map(|address| (address, initial(address))));
    }
    words
}

fn named(table: &Table<'_>, symbol: &elf::Sym64<LittleEndian>, name: &str) -> bool {
    symbol.name(LittleEndian, table.strings()).is_ok_and(|n| n == name.as_bytes())
}
