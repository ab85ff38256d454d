import { describe, expect, it } from 'vitest';
import { withoutPause } from '../../src/core/concurrency/slices.ts';
import { checkImageInSteps } from '../../src/media/images.ts';
import {
  ALPHA_WEBP,
  ANIMATED_WEBP,
  exifSegment,
  GIF,
  JPEG,
  jpegSegment,
  jpegWith,
  LOSSLESS_WEBP,
  PROGRESSIVE_JPEG,
  png,
  pngChunk,
  pngOfSize,
  WEBP,
  ZIP,
} from '../support/images.ts';

const check = (file: Buffer) => withoutPause(checkImageInSteps(file));
const HTML = Buffer.from('<script>alert(1)</script>');

describe('an image', () => {
  it.each([
    ['PNG', png(), 'image/png', 3, 2, 1],
    ['baseline JPEG', JPEG, 'image/jpeg', 24, 16, 1],
    ['progressive JPEG', PROGRESSIVE_JPEG, 'image/jpeg', 24, 16, 1],
    ['animated GIF', GIF, 'image/gif', 8, 6, 2],
    ['lossy WebP', WEBP, 'image/webp', 12, 8, 1],
    ['lossless WebP', LOSSLESS_WEBP, 'image/webp', 12, 8, 1],
    ['animated WebP', ANIMATED_WEBP, 'image/webp', 8, 6, 2],
    ['WebP with an alpha channel', ALPHA_WEBP, 'image/webp', 64, 64, 1],
  ])('is recognized and stays as it is: %s', (_, file, type, width, height, frames) => {
    expect(check(file)).toEqual({ type, width, height, frames, bytes: file });
  });

  it('of five megabytes is read in steps', () => {
    const file = pngOfSize(5 * 2 ** 20);
    expect(file.length).toBe(5 * 2 ** 20);
    const image = check(file);
    expect(typeof image !== 'string' && image.bytes.equals(file)).toBe(true);
  });

  it('loses what does not show it: comments, places, thumbnails, data of other programs', () => {
    const clean = png();
    const text = ['tEXt', 'iTXt', 'zTXt', 'eXIf', 'tIME', 'skIp'].map((type) => pngChunk(type, HTML));
    expect(check(png({}, text))).toMatchObject({ bytes: clean });
    const photo = jpegWith(
      exifSegment(1),
      jpegSegment(0xfe, '<script>'),
      jpegSegment(0xed, 'Photoshop 3.0\0'),
    );
    expect(check(photo)).toMatchObject({ bytes: JPEG, width: 24, height: 16 });
    const comment = Buffer.from([0x21, 0xfe, HTML.length, ...HTML, 0]);
    const gif = Buffer.concat([GIF.subarray(0, -1), comment, GIF.subarray(-1)]);
    expect(check(gif)).toMatchObject({ bytes: GIF });
    const exif = Buffer.concat([Buffer.from('EXIF\x04\0\0\0Here')]);
    const webp = Buffer.concat([ALPHA_WEBP, exif]);
    webp.writeUInt32LE(webp.length - 8, 4);
    webp.writeUInt8(webp.readUInt8(20) | 0x08, 20);
    expect(check(webp)).toMatchObject({ bytes: ALPHA_WEBP });
  });

  it('of a turned camera stays turned without its place', () => {
    const turned = check(jpegWith(exifSegment(6)));
    if (typeof turned === 'string') throw new Error(turned);
    expect(turned).toMatchObject({ width: 16, height: 24 });
    expect(turned.bytes.toString('latin1')).not.toContain('Munich');
    // What was written is read as the same orientation, and does not change again.
    expect(check(turned.bytes)).toEqual(turned);
  });

  it('keeps zeros and further pictures of a camera out', () => {
    const padded = Buffer.concat([JPEG, Buffer.alloc(100)]);
    expect(check(padded)).toMatchObject({ bytes: JPEG });
    const pictures = Buffer.concat([jpegWith(jpegSegment(0xe2, 'MPF\0index')), JPEG]);
    expect(check(pictures)).toMatchObject({ bytes: JPEG });
  });
});

const sized = (width: number, height: number) => png({ width, height });
const gifOf = (frames: number) => {
  const frame = Buffer.concat([
    Buffer.from([0x2c, 0, 0, 0, 0, 1, 0, 1, 0, 0]),
    Buffer.from([2, 2, 0x44, 1, 0]),
  ]);
  return Buffer.concat([
    Buffer.from('GIF89a\x01\0\x01\0\0\0\0', 'latin1'),
    ...Array.from({ length: frames }, () => frame),
    Buffer.from([0x3b]),
  ]);
};
const brokenSum = Buffer.from(png());
brokenSum.writeUInt8(brokenSum.readUInt8(42) ^ 1, 42);
const svg = '<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>';

describe('a file that is refused', () => {
  it.each([
    ['nothing', Buffer.alloc(0), 'is empty'],
    ['text', Buffer.from('hello'), 'is not an image'],
    ['HTML', HTML, 'is not an image'],
    ['SVG with a script', Buffer.from(svg), 'is an SVG'],
    ['SVG with a declaration', Buffer.from(`<?xml version="1.0"?>\n<!-- x -->${svg}`), 'is an SVG'],
    ['AVIF', Buffer.from('\0\0\0 ftypavif\0\0\0\0', 'latin1'), 'is AVIF'],
    ['PDF', Buffer.from('%PDF-1.7\n'), 'is not an image'],
    ['BMP', Buffer.from('BM\x3a\0\0\0', 'latin1'), 'is not an image'],
    ['ZIP', ZIP, 'is not an image'],
    ['PNG and ZIP', Buffer.concat([png(), ZIP]), 'bytes behind the end'],
    ['JPEG and HTML', Buffer.concat([JPEG, HTML]), 'bytes behind the end'],
    ['JPEG and JPEG without an index', Buffer.concat([JPEG, JPEG]), 'bytes behind the end'],
    ['GIF and ZIP (GIFAR)', Buffer.concat([GIF, ZIP]), 'bytes behind the end'],
    ['WebP and ZIP', Buffer.concat([WEBP, ZIP]), 'bytes behind the end'],
    ['WebP and a second image', Buffer.concat([WEBP, WEBP.subarray(12)]), 'bytes behind the end'],
    ['PNG with a wrong checksum', brokenSum, 'checksum of its chunk IDAT'],
    ['PNG without image data', Buffer.concat([png().subarray(0, 33), pngChunk('IEND')]), 'no image data'],
    ['PNG with an unknown critical chunk', png({}, [pngChunk('EVIL')]), 'unknown chunk EVIL'],
    ['PNG with two headers', png({}, [png().subarray(8, 33)]), 'two headers'],
    ['PNG without width', sized(0, 5), 'is 0'],
    ['PNG that is too wide', sized(16_385, 1), 'at most 16384'],
    ['PNG with too many pixels', sized(10_000, 5001), 'at most 50 million'],
    ['PNG with the largest numbers', sized(0xffffffff, 0xffffffff), 'at most 16384'],
    [
      'PNG with too many frames',
      png({ width: 1000, height: 1000 }, [pngChunk('acTL', Buffer.from('000001f500000000', 'hex'))]),
      'too long an animation',
    ],
    ['GIF with too many frames', gifOf(1001), 'too long an animation'],
    ['GIF without a frame', Buffer.from('GIF89a\x01\0\x01\0\0\0\0;', 'latin1'), 'no image data'],
    [
      'GIF that begins a comment of JavaScript',
      Buffer.from('GIF89a/*\x01\0\0\0\0;*/=1;', 'latin1'),
      'no image data',
    ],
    [
      'JPEG without a frame',
      Buffer.concat([JPEG.subarray(0, 2), Buffer.from([0xff, 0xd9])]),
      'no image data',
    ],
    [
      'JPEG with arithmetic coding',
      jpegWith(jpegSegment(0xc9, '\x08\0\x10\0\x18\x01\x01\x11\0')),
      'kind of JPEG',
    ],
    ['JPEG with two frames', jpegWith(jpegSegment(0xc0, '\x08\0\x10\0\x18\x01\x01\x11\0')), 'two frames'],
    ['RIFF that is no WebP', Buffer.from('RIFF\x04\0\0\0WAVE', 'latin1'), 'is not an image'],
  ])('%s', (_, file, reason) => {
    expect(check(file)).toContain(reason);
  });

  it('any image that ends early', () => {
    for (const file of [png(), JPEG, PROGRESSIVE_JPEG, GIF, WEBP, LOSSLESS_WEBP, ANIMATED_WEBP, ALPHA_WEBP])
      for (let length = 1; length < file.length; length++)
        expect(typeof check(file.subarray(0, length)), `${length} of ${file.length} bytes`).toBe('string');
  });

  it('or is accepted without what was changed, for any changed byte', () => {
    for (const file of [png(), JPEG, GIF, WEBP, ANIMATED_WEBP, ALPHA_WEBP])
      for (let at = 0; at < file.length; at++) {
        const changed = Buffer.from(file);
        changed.writeUInt8(changed.readUInt8(at) ^ 0xff, at);
        const image = check(changed);
        // What is stored is accepted again, unchanged.
        if (typeof image !== 'string') expect(check(image.bytes)).toEqual(image);
      }
  });
});
