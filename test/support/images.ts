import { crc32, deflateSync } from 'node:zlib';

/* Images for tests: small files that usual programs wrote, and PNG files of any size. */

const sample = (base64: string): Buffer => Buffer.from(base64, 'base64');

/** 24 × 16 pixels, baseline. */
export const JPEG = sample(
  '/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAAMCAgICAgMCAgIDAwMDBAYEBAQEBAgGBgUGCQgKCgkICQkKDA8MCgsOCwkJDRENDg8QEBEQCgwSExIQEw8QEBD/2wBDAQMDAwQDBAgEBAgQCwkLEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBD/wAARCAAQABgDAREAAhEBAxEB/8QAFgABAQEAAAAAAAAAAAAAAAAAAAcI/8QAFxAAAwEAAAAAAAAAAAAAAAAAAAEVUv/EABYBAQEBAAAAAAAAAAAAAAAAAAAIBP/EABcRAAMBAAAAAAAAAAAAAAAAAAAWYhf/2gAMAwEAAhEDEQA/AMsXVszZ1BfD5QurYzqA+ULq2M6gPlE8urZeedQRY+ULq2M6gPlC6tjOoD5R/9k=',
);
/** The same, progressive. */
export const PROGRESSIVE_JPEG = sample(
  '/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAAMCAgICAgMCAgIDAwMDBAYEBAQEBAgGBgUGCQgKCgkICQkKDA8MCgsOCwkJDRENDg8QEBEQCgwSExIQEw8QEBD/2wBDAQMDAwQDBAgEBAgQCwkLEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBD/wgARCAAQABgDAREAAhEBAxEB/8QAFgABAQEAAAAAAAAAAAAAAAAAAAYH/8QAFgEBAQEAAAAAAAAAAAAAAAAAAAcD/9oADAMBAAIQAxAAAAHK8r4BPXqKgf/EABUQAQEAAAAAAAAAAAAAAAAAAAAT/9oACAEBAAEFArrrrrrv/8QAFhEAAwAAAAAAAAAAAAAAAAAAABVh/9oACAEDAQE/AX1H1H1H1H1H1P/EABYRAAMAAAAAAAAAAAAAAAAAAAAWYf/aAAgBAgEBPwFdguwXYLsF2C7D/8QAFBABAAAAAAAAAAAAAAAAAAAAIP/aAAgBAQAGPwJf/8QAFRABAQAAAAAAAAAAAAAAAAAAAHH/2gAIAQEAAT8hpSlKU//aAAwDAQACAAMAAAAQ2xJ//8QAFBEBAAAAAAAAAAAAAAAAAAAAIP/aAAgBAwEBPxBVAf/EABQRAQAAAAAAAAAAAAAAAAAAACD/2gAIAQIBAT8QX/8A/8QAFRABAQAAAAAAAAAAAAAAAAAAABH/2gAIAQEAAT8Qllllll//2Q==',
);
/** 12 × 8 pixels, lossy and lossless. */
export const WEBP = sample(
  'UklGRlAAAABXRUJQVlA4IEQAAACwAgCdASoMAAgAAgA0JagCdLcAlgH8AuP8D0P9gAAA/vaw64VOXrH/ji+FUl6/eFUl/8Cd/4U1/5nM6/LrKOkkS4AAAA==',
);
export const LOSSLESS_WEBP = sample(
  'UklGRkgAAABXRUJQVlA4TDsAAAAvC8ABAD8AEIT/bRMCgRQO0wKBxJ/xXJ5/gkmaajtGB+cDDEKSkkIKKaSQQgop5D+zEBH9z+dYhqZIAgA=',
);
/** 8 × 6 pixels, two frames. */
export const GIF = sample(
  'R0lGODlhCAAGAPAAAP8AAAAAACH5BAAKAAAAIf8LTkVUU0NBUEUyLjADAQAAACwAAAAACAAGAAACBoSPqct9BQAh+QQACgAAACwAAAAACAAGAIAAAP8AAAACBoSPqct9BQA7',
);
export const ANIMATED_WEBP = sample(
  'UklGRowAAABXRUJQVlA4WAoAAAACAAAABwAABQAAQU5JTQYAAAAAAP//AABBTk1GLAAAAAAAAAAAAAcAAAUAAGQAAAJWUDhMFAAAAC8HQAEABxD9j/4HAILwv20iov8hQU5NRiwAAAAAAAAAAAAHAAAFAABkAAAAVlA4TBQAAAAvB0ABAAcQ0f/+BwCC8L9tIqL/IQ==',
);
/** 64 × 64 pixels with an alpha channel. */
export const ALPHA_WEBP = sample(
  'UklGRowAAABXRUJQVlA4WAoAAAAQAAAAPwAAPwAAQUxQSCIAAAABmYzof0Bt2zaM6/+Hew2CiAkQEBT5YATCupqL++V7/TYAVlA4IEQAAACQAwCdASpAAEAAPpFIoEwlpCMiIggAsBIJaQAAEGhXFsQuMAogAP71WL//+5wP/9nA//2cD+Ov/16pa5Oj+WlsHAAAAA==',
);

/** A chunk of a PNG with its checksum. */
export function pngChunk(type: string, data: Buffer = Buffer.alloc(0)): Buffer {
  const chunk = Buffer.alloc(12 + data.length);
  chunk.writeUInt32BE(data.length);
  chunk.write(type, 4, 'latin1');
  data.copy(chunk, 8);
  chunk.writeUInt32BE(crc32(chunk.subarray(4, -4)), 8 + data.length);
  return chunk;
}

/** A grayscale PNG; `more`: chunks before the image data. `seed`: different values are different images. */
export function png(
  { width = 3, height = 2, seed = 0 }: { width?: number; height?: number; seed?: number } = {},
  more: readonly Buffer[] = [],
): Buffer {
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width);
  header.writeUInt32BE(height, 4);
  header.writeUInt8(8, 8);
  const pixels = Buffer.alloc(1 + 4, 0);
  pixels.writeUInt32BE(seed, 1);
  return Buffer.concat([
    Buffer.from('89504e470d0a1a0a', 'hex'),
    pngChunk('IHDR', header),
    ...more,
    pngChunk('IDAT', deflateSync(pixels)),
    pngChunk('IEND'),
  ]);
}

/** A PNG of exactly `bytes`, whose image data is noise. */
export function pngOfSize(bytes: number): Buffer {
  const noise = Buffer.alloc(bytes - png().length + deflateSync(Buffer.alloc(5)).length);
  for (let at = 0; at < noise.length; at++) noise[at] = (at * 2_654_435_761) >>> 24;
  const file = png();
  return Buffer.concat([file.subarray(0, 33), pngChunk('IDAT', noise), pngChunk('IEND')]);
}

/** A segment of a JPEG. */
export function jpegSegment(marker: number, content: Buffer | string): Buffer {
  const data = Buffer.from(content as string, 'latin1');
  const head = Buffer.from([0xff, marker, 0, 0]);
  head.writeUInt16BE(2 + data.length, 2);
  return Buffer.concat([head, data]);
}

/** A JPEG with segments after its beginning. */
export function jpegWith(...segments: Buffer[]): Buffer {
  return Buffer.concat([JPEG.subarray(0, 2), ...segments, JPEG.subarray(2)]);
}

/** An Exif segment with an orientation and the name of a place. */
export function exifSegment(orientation: number): Buffer {
  const tiff = Buffer.alloc(26);
  tiff.write('II*\0', 'latin1');
  tiff.writeUInt32LE(8, 4);
  tiff.writeUInt16LE(1, 8);
  tiff.writeUInt16LE(0x0112, 10);
  tiff.writeUInt16LE(3, 12);
  tiff.writeUInt32LE(1, 14);
  tiff.writeUInt16LE(orientation, 18);
  return jpegSegment(
    0xe1,
    Buffer.concat([Buffer.from('Exif\0\0'), tiff, Buffer.from('48.137,11.575 Munich')]),
  );
}

/** A file that ends like a ZIP archive: an entry in its directory and the end of the directory. */
export const ZIP = Buffer.concat([
  Buffer.from('504b0304', 'hex'),
  Buffer.alloc(26),
  Buffer.from('504b0506', 'hex'),
  Buffer.alloc(18),
]);
