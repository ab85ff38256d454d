import { crc32 } from 'node:zlib';
import type { Work } from '../core/concurrency/slices.ts';

/*
 * Determines the type of an image by its content and checks its structure: all headers, sizes and lengths up to the end of the
 * file. Pixels are not decoded. What is stored consists only of the parts that were checked and that show the image: comments,
 * positions (Exif), thumbnails and parts of other programs are removed. A file with anything behind the image is refused: it
 * may be another file as well (a ZIP archive, HTML).
 */

export const IMAGE_TYPES = ['image/png', 'image/jpeg', 'image/gif', 'image/webp'] as const;
export type ImageType = (typeof IMAGE_TYPES)[number];

/** An image with what its viewers need of the file. */
export interface CheckedImage {
  type: ImageType;
  /** Pixels as they are shown: a photo may be stored turned. */
  width: number;
  height: number;
  /** 1: it is not animated. */
  frames: number;
  bytes: Buffer;
}

/** Pixels of a side. */
const MAX_SIDE = 16_384;
/** Pixels of an image. A viewer needs four bytes for each. */
const MAX_PIXELS = 50_000_000;
const MAX_FRAMES = 1000;
/** Pixels of all frames of an animation. */
const MAX_ANIMATED_PIXELS = 500_000_000;
/** Parts of a file (chunks, segments, blocks). Encoders write hundreds. */
const MAX_PARTS = 20_000;
/** Scans of a progressive JPEG, each of which a viewer draws. Encoders write ten. */
const MAX_SCANS = 200;
/** Bytes that are read between two yields. */
const BYTES_PER_STEP = 256 * 1024;

/** Why a file is refused, as the rest of a sentence ("file: …"). */
class ImageFault extends Error {}

/** Returns the image, or why it is refused, as the rest of a sentence. */
export function* checkImageInSteps(file: Buffer): Work<CheckedImage | string> {
  try {
    if (file.length === 0) return 'is empty';
    if (file.subarray(0, 8).equals(PNG_SIGNATURE)) return yield* checkPng(file);
    if (file.subarray(0, 3).equals(JPEG_START)) return yield* checkJpeg(file);
    if (/^GIF8[79]a$/.test(file.toString('latin1', 0, 6))) return yield* checkGif(file);
    if (isAt(file, 0, 'RIFF') && isAt(file, 8, 'WEBP')) return yield* checkWebp(file);
    return otherType(file);
  } catch (error) {
    if (error instanceof ImageFault) return error.message;
    // Reading beyond the end.
    if (error instanceof RangeError) return TRUNCATED;
    throw error;
  }
}

const TRUNCATED = 'is incomplete or damaged: it ends within the image';

function otherType(file: Buffer): string {
  const head = file.toString('latin1', 0, 1024).toLowerCase();
  if (head.includes('<svg'))
    return 'is an SVG, which may contain scripts and which few mail programs show: convert it to PNG';
  if (isAt(file, 4, 'ftyp'))
    return 'is AVIF, HEIC or a video, which few mail programs show: convert it to JPEG or PNG';
  return 'is not an image: it must be PNG, JPEG, GIF or WebP';
}

function isAt(file: Buffer, at: number, text: string): boolean {
  return file.toString('latin1', at, at + text.length) === text;
}

function fault(reason: string): never {
  throw new ImageFault(reason);
}

function damaged(what: string): never {
  fault(`is damaged or not an image: ${what}`);
}

function checkSize(width: number, height: number, frames = 1): void {
  if (width === 0 || height === 0) damaged('its width or height is 0');
  if (width > MAX_SIDE || height > MAX_SIDE)
    fault(`has ${width} × ${height} pixels: a side may have at most ${MAX_SIDE}`);
  if (width * height > MAX_PIXELS)
    fault(`has ${width} × ${height} pixels: at most ${MAX_PIXELS / 1_000_000} million are possible`);
  if (frames > MAX_FRAMES || frames * width * height > MAX_ANIMATED_PIXELS)
    fault(`is too long an animation: ${frames} frames of ${width} × ${height} pixels`);
}

/** Refuses what follows the image. Zeros, with which some cameras fill a block, are cut. */
function checkEnd(file: Buffer, end: number): void {
  for (let at = end; at < file.length; at++)
    if (file[at] !== 0)
      fault(
        `has ${file.length - end} bytes behind the end of the image, which may be another file: save the image again without them`,
      );
}

/** Collects the parts of a file that stay. Adjacent parts are one range. */
function keptParts(file: Buffer) {
  const ranges: (Buffer | { start: number; end: number })[] = [];
  let count = 0;
  return {
    keep: (start: number, end: number): void => {
      const last = ranges.at(-1);
      if (last !== undefined && 'end' in last && last.end === start) last.end = end;
      else ranges.push({ start, end });
    },
    add: (bytes: Buffer): void => void ranges.push(bytes),
    /** Counts a part that was read. */
    count: (): void => {
      if (++count > MAX_PARTS) fault(`has more than ${MAX_PARTS} parts`);
    },
    bytes: (): Buffer =>
      Buffer.concat(ranges.map((range) => ('end' in range ? file.subarray(range.start, range.end) : range))),
  };
}

/* PNG (RFC 2083, PNG Third Edition). */

const PNG_SIGNATURE = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
/** Chunks that show the image; other ancillary chunks are removed. */
const PNG_CHUNKS = new Set(
  'IHDR PLTE IDAT IEND tRNS gAMA cHRM sRGB iCCP cICP mDCV cLLI sBIT bKGD hIST pHYs sPLT acTL fcTL fdAT'.split(
    ' ',
  ),
);
/** Bit depths by color type. */
const PNG_DEPTHS: Partial<Record<number, readonly number[]>> = {
  0: [1, 2, 4, 8, 16],
  2: [8, 16],
  3: [1, 2, 4, 8],
  4: [8, 16],
  6: [8, 16],
};

function* checkPng(file: Buffer): Work<CheckedImage> {
  const kept = keptParts(file);
  kept.keep(0, 8);
  const width = file.readUInt32BE(16);
  const height = file.readUInt32BE(20);
  let frames = 1;
  /** The IDAT chunks follow each other. */
  let data: 'before' | 'in' | 'after' = 'before';
  let hasPalette = false;
  let isOver = false;
  let at = 8;
  let read = 0;
  while (!isOver) {
    const length = file.readUInt32BE(at);
    const type = file.toString('latin1', at + 4, at + 8);
    const end = at + 12 + length;
    if (!/^[A-Za-z]{4}$/.test(type)) damaged('it has a chunk without a type');
    if (end > file.length) fault(TRUNCATED);
    if (crc32(file.subarray(at + 4, end - 4)) !== file.readUInt32BE(end - 4))
      damaged(`the checksum of its chunk ${type} is wrong`);
    if (at === 8) {
      if (type !== 'IHDR' || length !== 13) damaged('it does not begin with its header');
      const color = file.readUInt8(25);
      const isKnown = PNG_DEPTHS[color]?.includes(file.readUInt8(24)) === true;
      if (!isKnown || file.readUInt8(26) !== 0 || file.readUInt8(27) !== 0 || file.readUInt8(28) > 1)
        damaged('its header has unknown values');
      checkSize(width, height);
    } else if (type === 'IHDR') damaged('it has two headers');
    if (type === 'IDAT') {
      if (data === 'after') damaged('its image data is interrupted');
      data = 'in';
    } else if (data === 'in') data = 'after';
    if (type === 'PLTE') hasPalette = length > 0 && length <= 768 && length % 3 === 0;
    if (type === 'acTL') {
      if (length !== 8) damaged('its animation has no length');
      frames = file.readUInt32BE(at + 8);
      checkSize(width, height, frames);
    }
    if (type === 'fcTL' && (file.readUInt32BE(at + 12) > width || file.readUInt32BE(at + 16) > height))
      damaged('a frame is larger than the image');
    if (type === 'IEND') {
      if (length !== 0) damaged('its end has data');
      isOver = true;
    }
    if (PNG_CHUNKS.has(type)) kept.keep(at, end);
    else if (/^[A-Z]/.test(type)) damaged(`it has the unknown chunk ${type}`);
    kept.count();
    at = end;
    read += 12 + length;
    if (read > BYTES_PER_STEP) {
      read = 0;
      yield;
    }
  }
  if (data === 'before') damaged('it has no image data');
  if (file.readUInt8(25) === 3 && !hasPalette) damaged('it has no palette');
  checkEnd(file, at);
  return { type: 'image/png', width, height, frames: Math.max(1, frames), bytes: kept.bytes() };
}

/* JPEG (ITU-T T.81). */

const JPEG_START = Buffer.from([0xff, 0xd8, 0xff]);
const SOI = 0xd8;
const EOI = 0xd9;
const SOS = 0xda;
/** Huffman and quantization tables, restart interval. */
const JPEG_TABLES = new Set([0xc4, 0xdb, 0xdd]);
/** Baseline, extended sequential and progressive frames with Huffman coding. */
const JPEG_FRAMES = new Set([0xc0, 0xc1, 0xc2]);
/** Beginnings of application segments that viewers need: density, color profile, color transform. */
const JPEG_APPLICATION: Partial<Record<number, string>> = {
  224: 'JFIF\0',
  226: 'ICC_PROFILE\0',
  238: 'Adobe',
};
const EXIF = 0xe1;
const COMMENT = 0xfe;
/** The index of further pictures behind the first: previews and brightness maps of phones (CIPA DC-007). */
const MULTI_PICTURE = 'MPF\0';

function* checkJpeg(file: Buffer): Work<CheckedImage> {
  const kept = keptParts(file);
  kept.keep(0, 2);
  let size: { width: number; height: number } | null = null;
  let orientation = 1;
  let scans = 0;
  let hasMorePictures = false;
  let at = 2;
  for (;;) {
    if (file.readUInt8(at) !== 0xff) damaged('a segment has no marker');
    const start = at;
    while (file.readUInt8(at + 1) === 0xff) at++;
    const marker = file.readUInt8(at + 1);
    if (marker === EOI) {
      kept.keep(start, at + 2);
      at += 2;
      break;
    }
    const length = file.readUInt16BE(at + 2);
    const end = at + 2 + length;
    if (length < 2) damaged('a segment has no length');
    if (end > file.length) fault(TRUNCATED);
    kept.count();
    const content = at + 4;
    if (JPEG_FRAMES.has(marker)) {
      if (size !== null) damaged('it has two frames');
      const components = file.readUInt8(content + 5);
      if (file.readUInt8(content) !== 8 || ![1, 3, 4].includes(components) || length !== 8 + 3 * components)
        damaged('its frame has unknown values');
      size = { width: file.readUInt16BE(content + 3), height: file.readUInt16BE(content + 1) };
      checkSize(size.width, size.height);
      kept.keep(start, end);
    } else if (marker === SOS) {
      if (size === null) damaged('it has no frame');
      if (length !== 6 + 2 * file.readUInt8(content)) damaged('a scan has unknown values');
      if (++scans > MAX_SCANS) fault(`has more than ${MAX_SCANS} scans`);
      const afterScan = yield* endOfScan(file, end);
      kept.keep(start, afterScan);
      at = afterScan;
      continue;
    } else if (JPEG_TABLES.has(marker)) kept.keep(start, end);
    else if (marker >= 0xe0 && marker <= 0xef) {
      const needed = JPEG_APPLICATION[marker];
      if (needed !== undefined && isAt(file, content, needed)) kept.keep(start, end);
      else if (marker === EXIF && isAt(file, content, 'Exif\0\0'))
        orientation = exifOrientation(file.subarray(content + 6, end)) ?? orientation;
      else if (isAt(file, content, MULTI_PICTURE)) hasMorePictures = true;
    } else if (marker !== COMMENT)
      fault('uses a kind of JPEG that few programs show: save it as a usual JPEG');
    at = end;
  }
  if (size === null || scans === 0) damaged('it has no image data');
  const isFollowedByPicture = hasMorePictures && file.readUInt16BE(at) === 0xff00 + SOI;
  if (!isFollowedByPicture) checkEnd(file, at);
  const { width, height } = size;
  const bytes = kept.bytes();
  const isTurned = orientation > 4;
  return {
    type: 'image/jpeg',
    width: isTurned ? height : width,
    height: isTurned ? width : height,
    frames: 1,
    bytes:
      orientation === 1
        ? bytes
        : Buffer.concat([bytes.subarray(0, 2), orientationSegment(orientation), bytes.subarray(2)]),
  };
}

/** The position of the marker behind the entropy-coded data at `at`, which has stuffed bytes and restart markers only. */
function* endOfScan(file: Buffer, start: number): Work<number> {
  let at = start;
  for (;;) {
    const limit = Math.min(file.length - 1, at + BYTES_PER_STEP);
    while (at < limit) {
      if (file[at] !== 0xff) at++;
      else {
        const next = file[at + 1] ?? 0;
        if (next === 0 || (next >= 0xd0 && next <= 0xd7)) at += 2;
        else if (next === 0xff) at++;
        else return at;
      }
    }
    if (at >= file.length - 1) fault(TRUNCATED);
    yield;
  }
}

const ORIENTATION_TAG = 0x0112;

/** The orientation (1 to 8) in the first directory of an Exif block (TIFF 6.0); null: it states none. */
function exifOrientation(tiff: Buffer): number | null {
  const isLittle = isAt(tiff, 0, 'II');
  if (tiff.length < 14 || !(isLittle || isAt(tiff, 0, 'MM'))) return null;
  const u16 = (at: number) => (isLittle ? tiff.readUInt16LE(at) : tiff.readUInt16BE(at));
  const directory = isLittle ? tiff.readUInt32LE(4) : tiff.readUInt32BE(4);
  if (directory + 2 > tiff.length) return null;
  const entries = u16(directory);
  for (let n = 0; n < entries; n++) {
    const at = directory + 2 + 12 * n;
    if (at + 12 > tiff.length) return null;
    if (u16(at) !== ORIENTATION_TAG) continue;
    const value = u16(at + 8);
    return value >= 1 && value <= 8 ? value : null;
  }
  return null;
}

/** An Exif segment with the orientation only. */
function orientationSegment(orientation: number): Buffer {
  const tiff = Buffer.from('MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\0\0\0\0\0\0\0', 'latin1');
  tiff.writeUInt16BE(orientation, 18);
  const head = Buffer.from('\xff\xe1\0\0Exif\0\0', 'latin1');
  head.writeUInt16BE(head.length - 2 + tiff.length, 2);
  return Buffer.concat([head, tiff]);
}

/* GIF (GIF89a Specification). */

/** Application extensions that viewers need: how often an animation repeats. */
const GIF_APPLICATIONS = new Set(['NETSCAPE2.0', 'ANIMEXTS1.0']);
const GIF_GRAPHIC_CONTROL = 0xf9;
const GIF_APPLICATION = 0xff;

function* checkGif(file: Buffer): Work<CheckedImage> {
  const kept = keptParts(file);
  const width = file.readUInt16LE(6);
  const height = file.readUInt16LE(8);
  checkSize(width, height);
  let frames = 0;
  let at = 13 + colorTableBytes(file.readUInt8(10));
  kept.keep(0, Math.min(at, file.length));
  let stepEnd = at + BYTES_PER_STEP;
  for (;;) {
    if (at > stepEnd) {
      stepEnd = at + BYTES_PER_STEP;
      yield;
    }
    const start = at;
    const kind = file.readUInt8(at);
    kept.count();
    if (kind === 0x3b) {
      kept.keep(start, ++at);
      break;
    }
    if (kind === 0x21) {
      const label = file.readUInt8(at + 1);
      at = yield* endOfBlocks(file, at + 2);
      const isNeeded =
        label === GIF_GRAPHIC_CONTROL ||
        (label === GIF_APPLICATION && GIF_APPLICATIONS.has(file.toString('latin1', start + 3, start + 14)));
      if (isNeeded) kept.keep(start, at);
    } else if (kind === 0x2c) {
      checkSize(file.readUInt16LE(at + 5), file.readUInt16LE(at + 7));
      checkSize(width, height, ++frames);
      at += 10 + colorTableBytes(file.readUInt8(at + 9));
      const codeSize = file.readUInt8(at);
      if (codeSize < 1 || codeSize > 11) damaged('its image data has unknown values');
      at = yield* endOfBlocks(file, at + 1);
      kept.keep(start, at);
    } else damaged('it has an unknown block');
  }
  if (frames === 0) damaged('it has no image data');
  checkEnd(file, at);
  return { type: 'image/gif', width, height, frames, bytes: kept.bytes() };
}

function colorTableBytes(flags: number): number {
  return (flags & 0x80) === 0 ? 0 : 3 * 2 ** ((flags & 7) + 1);
}

/** The position behind data sub-blocks that begin at `at`. */
function* endOfBlocks(file: Buffer, start: number): Work<number> {
  let at = start;
  for (let blocks = 1; ; blocks++) {
    const length = file.readUInt8(at);
    at += 1 + length;
    if (length === 0) return at;
    if (blocks % 4096 === 0) yield;
  }
}

/* WebP (RFC 9649). */

const WEBP_ANIMATION = 0x02;
/** Exif and XMP, which are removed. */
const WEBP_METADATA = 0x08 | 0x04;
const WEBP_CHUNKS = new Set(['VP8 ', 'VP8L', 'VP8X', 'ALPH', 'ICCP', 'ANIM', 'ANMF']);

function* checkWebp(file: Buffer): Work<CheckedImage> {
  const kept = keptParts(file);
  const end = 8 + file.readUInt32LE(4);
  if (end > file.length) fault(TRUNCATED);
  let canvas: { width: number; height: number } | null = null;
  let still: { width: number; height: number } | null = null;
  let isAnimated = false;
  let frames = 0;
  let at = 12;
  while (at < end) {
    const type = file.toString('latin1', at, at + 4);
    const content = at + 8;
    const length = file.readUInt32LE(at + 4);
    const next = content + length + (length % 2);
    if (next > end) fault(TRUNCATED);
    kept.count();
    if (type === 'VP8X') {
      if (at !== 12 || length !== 10) damaged('its header is not at its beginning');
      canvas = { width: 1 + file.readUIntLE(content + 4, 3), height: 1 + file.readUIntLE(content + 7, 3) };
      checkSize(canvas.width, canvas.height);
      const flags = file.readUInt8(content);
      isAnimated = (flags & WEBP_ANIMATION) !== 0;
      const header = Buffer.from(file.subarray(at, next));
      header.writeUInt8(flags & ~WEBP_METADATA, 8);
      kept.add(header);
    } else if (WEBP_CHUNKS.has(type)) {
      if (canvas === null && at !== 12) damaged('it has a second image');
      if (type === 'VP8 ' || type === 'VP8L') {
        if (still !== null || isAnimated) damaged('it has a second image');
        still = webpBitstream(file, type, content, length);
      }
      if (type === 'ANMF') {
        if (canvas === null || !isAnimated) damaged('it has a frame without an animation');
        checkWebpFrame(file.subarray(content, content + length), canvas);
        checkSize(canvas.width, canvas.height, ++frames);
      }
      kept.keep(at, next);
    }
    at = next;
    yield;
  }
  const size = canvas ?? still;
  if (size === null || (still === null && frames === 0)) damaged('it has no image data');
  if (canvas !== null && still !== null && (still.width !== canvas.width || still.height !== canvas.height))
    damaged('its image has another size than its header');
  checkEnd(file, end);
  const chunks = kept.bytes();
  const head = Buffer.from('RIFF\0\0\0\0WEBP', 'latin1');
  head.writeUInt32LE(4 + chunks.length, 4);
  return { type: 'image/webp', ...size, frames: Math.max(1, frames), bytes: Buffer.concat([head, chunks]) };
}

/** The size of the image in a lossy or lossless bitstream, by its header. */
function webpBitstream(file: Buffer, type: 'VP8 ' | 'VP8L', at: number, length: number) {
  if (length < 10) damaged('its image data is too short');
  if (type === 'VP8 ') {
    if ((file.readUInt8(at) & 1) !== 0 || file.readUIntBE(at + 3, 3) !== 0x9d012a)
      damaged('its image data has no header');
    const size = { width: file.readUInt16LE(at + 6) & 0x3fff, height: file.readUInt16LE(at + 8) & 0x3fff };
    checkSize(size.width, size.height);
    return size;
  }
  const bits = file.readUInt32LE(at + 1);
  if (file.readUInt8(at) !== 0x2f || bits >>> 29 !== 0) damaged('its image data has no header');
  const size = { width: 1 + (bits & 0x3fff), height: 1 + ((bits >>> 14) & 0x3fff) };
  checkSize(size.width, size.height);
  return size;
}

/** A frame lies within the canvas and has one bitstream, which an alpha channel may precede. */
function checkWebpFrame(frame: Buffer, canvas: { width: number; height: number }): void {
  const right = 2 * frame.readUIntLE(0, 3) + 1 + frame.readUIntLE(6, 3);
  const bottom = 2 * frame.readUIntLE(3, 3) + 1 + frame.readUIntLE(9, 3);
  if (right > canvas.width || bottom > canvas.height) damaged('a frame is larger than the image');
  let at = 16;
  let images = 0;
  while (at < frame.length) {
    const type = frame.toString('latin1', at, at + 4);
    const length = frame.readUInt32LE(at + 4);
    const next = at + 8 + length + (length % 2);
    if (next > frame.length) fault(TRUNCATED);
    if (images > 0) damaged('a frame has two images');
    if (type === 'VP8 ' || type === 'VP8L') {
      webpBitstream(frame, type, at + 8, length);
      images++;
    } else if (type !== 'ALPH' || at !== 16) damaged('a frame has an unknown chunk');
    at = next;
  }
  if (images !== 1) damaged('a frame has no image data');
}
