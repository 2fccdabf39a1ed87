//! Refuses implausible sizes in damaged files before the crates that read them allocate the memory.
//!
//! These crates check most lengths against the available bytes, but not the claimed size of
//! decompressed data: a page of Parquet of up to 2 GiB, a dictionary of as many values, or a
//! compressed buffer of Arrow of any size. A size is refused here if it exceeds both a free
//! allowance and [`RATIO_MAX`] times the bytes from which it is decompressed. A dictionary with
//! more values than bytes is refused too. Anything that cannot be understood here is left to the
//! crates, which report the fault.
//!
//! The number of values that a page of delta-encoded strings claims is not checked, because it lies
//! inside compressed data.

use super::container::Container;
use crate::decode::frame::varint;
use arrow_ipc::reader::read_footer_length;
use arrow_ipc::{Block, Message, RecordBatch, root_as_footer, root_as_message};
use hyper::body::Bytes;
use parquet::errors::{ParquetError, Result};
use parquet::file::reader::{ChunkReader, Length};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};

/// Above the ratio of every codec but zstd: deflate reaches 1032, LZ4 255, Snappy 22.
const RATIO_MAX: u64 = 1100;

/// Free allowance of a page of Parquet, whose writers aim at 1 MiB. The crate may allocate it all
/// at once.
const PAGE_BYTES_FREE: u64 = 64 << 20;

/// Free allowance of a buffer of Arrow. A buffer is a whole column of a batch, and zstd compresses
/// it to very few bytes if all values are equal. Its memory is filled as it is decompressed.
const BUFFER_BYTES_FREE: u64 = 1 << 30;

/// Bytes at the end of a Parquet file: the length of the metadata, and the magic.
const PARQUET_TAIL: u64 = 8;

/// A file of Parquet whose page headers are checked as they are read.
pub(super) struct Checked(pub(super) File);

impl Length for Checked {
    fn len(&self) -> u64 {
        self.0.len()
    }
}

impl ChunkReader for Checked {
    type T = BufReader<File>;

    fn get_read(&self, start: u64) -> Result<BufReader<File>> {
        let mut reader = self.0.get_read(start)?;
        if start + PARQUET_TAIL < self.len() {
            PageSizes::of(reader.fill_buf()?).check()?;
        }
        Ok(reader)
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        let left = self.len().saturating_sub(start);
        match length as u64 <= left {
            true => self.0.get_bytes(start, length),
            false => Err(fault(format!(
                "{length} bytes are said to be at byte {start}, and {left} are there"
            ))),
        }
    }
}

fn fault(what: String) -> ParquetError {
    ParquetError::General(what)
}

/// The sizes in the header of a page, as far as it could be read.
#[derive(Debug, Default, PartialEq)]
struct PageSizes {
    uncompressed: Option<i64>,
    compressed: Option<i64>,
    /// Number of values in a dictionary.
    values: Option<i64>,
}

impl PageSizes {
    /// Reads fields 2 and 3, and field 1 of field 7, of the struct `PageHeader` in Thrift's compact
    /// protocol.
    fn of(bytes: &[u8]) -> PageSizes {
        const STRUCT: u8 = 12;
        let (mut at, mut id, mut inside) = (0, 0, false);
        let mut sizes = PageSizes::default();
        while let Some(head) = bytes.get(at) {
            let (kind, step) = (head & 15, i64::from(head >> 4));
            at += 1;
            id = match step {
                0 => match varint(bytes, &mut at) {
                    Some(id) => id,
                    None => break,
                },
                step => id + step,
            };
            match kind {
                // Integers.
                4..=6 => {
                    let value = varint(bytes, &mut at);
                    match (inside, id) {
                        (false, 2) => sizes.uncompressed = value,
                        (false, 3) => sizes.compressed = value,
                        (true, 1) => sizes.values = value,
                        _ => {}
                    }
                }
                STRUCT if id == 7 && !inside => (inside, id) = (true, 0),
                // The rest contains no sizes.
                _ => break,
            }
        }
        sizes
    }

    fn check(&self) -> Result<()> {
        let (Some(uncompressed), Some(compressed)) = (self.uncompressed, self.compressed) else {
            return Ok(());
        };
        // The crate refuses negative sizes.
        let [uncompressed, compressed] = [uncompressed, compressed].map(|n| n.max(0) as u64);
        if !is_possible(uncompressed, compressed, PAGE_BYTES_FREE) {
            let what = format!("a page of {compressed} bytes is said to become {uncompressed}");
            return Err(fault(what));
        }
        match self.values {
            Some(values) if values.max(0) as u64 > uncompressed => Err(fault(format!(
                "a dictionary of {uncompressed} bytes is said to have {values} values"
            ))),
            _ => Ok(()),
        }
    }
}

fn is_possible(becomes: u64, bytes: u64, free: u64) -> bool {
    becomes <= free.max(bytes.saturating_mul(RATIO_MAX))
}

/// Checks the buffers of all batches of a file of Arrow, and returns to its start.
pub(super) fn check_arrow(file: &File, container: Container) -> std::result::Result<(), String> {
    let mut arrow = Arrow {
        length: file.len(),
        reader: BufReader::new(file),
    };
    let found = match container {
        Container::ArrowFile => arrow.check_file(),
        Container::ArrowStream => arrow.check_stream(),
        Container::Parquet => Ok(None),
    };
    let found = found.and_then(|found| arrow.reader.rewind().map(|()| found));
    found.map_err(|e| e.to_string())?.map_or(Ok(()), Err)
}

/// The problem found with the sizes, if any.
type Finding = io::Result<Option<String>>;

struct Arrow<'f> {
    reader: BufReader<&'f File>,
    length: u64,
}

impl Arrow<'_> {
    /// Checks the batches listed in the footer.
    fn check_file(&mut self) -> Finding {
        let mut tail = [0; 10];
        let Some(tail_at) = self.length.checked_sub(10) else {
            return Ok(None);
        };
        self.reader.seek(SeekFrom::Start(tail_at))?;
        self.reader.read_exact(&mut tail)?;
        let Some(footer) = (read_footer_length(tail).ok())
            .and_then(|bytes| Some((tail_at.checked_sub(bytes as u64)?, bytes)))
        else {
            return Ok(None);
        };
        let footer = self.bytes(footer.0, footer.1)?;
        let Ok(footer) = root_as_footer(&footer) else {
            return Ok(None);
        };
        let lists = [footer.dictionaries(), footer.recordBatches()];
        for block in lists.iter().flatten().flatten() {
            if let Some(found) = self.check_block(block)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// Checks the message of a block. Like the crate, reads it from the start of the block and
    /// ignores its claimed lengths.
    fn check_block(&mut self, block: &Block) -> Finding {
        let lengths = [
            block.offset(),
            block.metaDataLength().into(),
            block.bodyLength(),
        ];
        let [Ok(at), Ok(head), Ok(body)] = lengths.map(u64::try_from) else {
            return Ok(None);
        };
        let whole = head.saturating_add(body);
        if !self.holds(at, whole) {
            let end = self.length;
            let what = format!("a batch of {whole} bytes is said to be at byte {at} of {end}");
            return Ok(Some(what));
        }
        for bytes in [head, whole] {
            let bytes = self.bytes(at, bytes as usize)?;
            // The message follows its length and, since 2019, a marker.
            let start = if bytes.starts_with(&[0xff; 4]) { 8 } else { 4 };
            if let Some(Ok(message)) = bytes.get(start..).map(root_as_message) {
                return self.check_batch(&message, at + head);
            }
        }
        Ok(None)
    }

    /// Checks messages one after another.
    fn check_stream(&mut self) -> Finding {
        let mut at = 0;
        while self.holds(at, 8) {
            let head = self.bytes(at, 8)?;
            let [mark, bytes] = [&head[..4], &head[4..]];
            let bytes = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
            if mark != [0xff; 4] || bytes == 0 || !self.holds(at + 8, bytes.into()) {
                break;
            }
            let message = self.bytes(at + 8, bytes as usize)?;
            let Ok(message) = root_as_message(&message) else {
                break;
            };
            let body_at = at + 8 + u64::from(bytes);
            let body = u64::try_from(message.bodyLength()).unwrap_or(u64::MAX);
            if let Some(found) = self.check_batch(&message, body_at)? {
                return Ok(Some(found));
            }
            at = body_at.saturating_add(body);
        }
        Ok(None)
    }

    fn check_batch(&mut self, message: &Message<'_>, body_at: u64) -> Finding {
        let dictionary = message.header_as_dictionary_batch().and_then(|d| d.data());
        let batch: Option<RecordBatch<'_>> = message.header_as_record_batch().or(dictionary);
        let packed = batch.filter(|b| b.compression().is_some());
        for buffer in packed.and_then(|b| b.buffers()).into_iter().flatten() {
            let (Ok(offset), Ok(bytes)) = (
                u64::try_from(buffer.offset()),
                u64::try_from(buffer.length()),
            ) else {
                continue;
            };
            let at = body_at.saturating_add(offset);
            if bytes < 8 || !self.holds(at, bytes) {
                continue;
            }
            let head = self.bytes(at, 8)?;
            let becomes = head.try_into().map_or(0, i64::from_le_bytes);
            // -1 marks an uncompressed buffer; the crate refuses other negative sizes.
            if !is_possible(becomes.max(0) as u64, bytes, BUFFER_BYTES_FREE) {
                let what = format!("a buffer of {bytes} bytes is said to become {becomes}");
                return Ok(Some(what));
            }
        }
        Ok(None)
    }

    fn holds(&self, at: u64, bytes: u64) -> bool {
        at.checked_add(bytes).is_some_and(|end| end <= self.length)
    }

    /// Reads bytes at a position; an error if the file is too short.
    fn bytes(&mut self, at: u64, bytes: usize) -> io::Result<Vec<u8>> {
        let mut read = vec![0; bytes];
        self.reader.seek(SeekFrom::Start(at))?;
        self.reader.read_exact(&mut read)?;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_of_a_page_are_read_off_its_header() {
        // Fields 1 to 3 are 2, 100 and 50; field 4 is a checksum; field 7 begins with 7 values.
        let header = [
            0x15, 4, 0x15, 200, 1, 0x15, 100, 0x15, 1, 0x3c, 0x15, 14, 0x15, 0, 0, 0,
        ];
        let sizes = PageSizes::of(&header);
        let wanted = PageSizes {
            uncompressed: Some(100),
            compressed: Some(50),
            values: Some(7),
        };
        assert_eq!(sizes, wanted);
        assert!(sizes.check().is_ok());
        for cut in 0..header.len() {
            let _ = PageSizes::of(&header[..cut]).check();
        }
        let said = |uncompressed: i64, compressed: i64, values: i64| {
            let sizes = PageSizes {
                uncompressed: Some(uncompressed),
                compressed: Some(compressed),
                values: Some(values),
            };
            sizes.check().map_err(|e| e.to_string())
        };
        assert!(said(64 << 20, 10, 5).is_ok() && said(1_000_000_000, 1_000_000, 5).is_ok());
        let large = said(i64::from(i32::MAX), 1000, 5).unwrap_err();
        assert!(
            large.contains("a page of 1000 bytes is said to become 2147483647"),
            "{large}"
        );
        let many = said(100, 50, 101).unwrap_err();
        assert!(
            many.contains("a dictionary of 100 bytes is said to have 101 values"),
            "{many}"
        );
    }
}
