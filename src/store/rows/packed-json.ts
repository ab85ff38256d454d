import { SHAPES, STRINGS } from './packed-json-dictionary.ts';

/*
 * A compact binary form of JSON for tables with millions of rows: reports of delivery attempts and fields of events. Known
 * object shapes and known strings take one or two bytes, times are differences from the time of the row, IPv4 addresses
 * take four bytes, and a string that occurs twice is stored once. Every JSON value can be packed, and unpacking returns
 * the text that `JSON.stringify` returns for the packed value.
 *
 * The tags below and the tables of packed-json-dictionary.ts are part of the file format: entries are only appended.
 */

const NULL = 0x00;
const FALSE = 0x01;
const TRUE = 0x02;
/** A non-negative integer as a varint; NEGATIVE: the absolute value of a negative one. */
const INTEGER = 0x03;
const NEGATIVE = 0x04;
const DOUBLE = 0x05;
/** Milliseconds since the epoch, as the difference from the row's time. */
const TIME = 0x06;
const STRING = 0x07;
/** A string that is not well-formed Unicode and so has no UTF-8: UTF-16. */
const STRING_16 = 0x08;
/** The number of a string that occurred earlier in the same value. */
const REPEATED = 0x09;
const IPV4 = 0x0a;
const ARRAY = 0x0b;
const OBJECT = 0x0c;
/** An object whose keys are SHAPES[n], in that order. */
const SHAPE = 0x0d;
/** A time in ISO 8601 with milliseconds and Z, as the difference from the row's time. */
const ISO_TIME = 0x0e;
/** From here on: the integers 0 to 47. */
const SMALL = 0x10;
const SMALL_COUNT = 0x30;
/** From here on: STRINGS. */
const KNOWN = 0x40;

const CODES: ReadonlyMap<string, number> = new Map(STRINGS.map((text, index) => [text, KNOWN + index]));
const KNOWN_TEXTS = STRINGS.map((text) => JSON.stringify(text));
const SHAPE_TEXTS = SHAPES.map((keys) => keys.map((key) => `${JSON.stringify(key)}:`));
const SHAPE_NUMBERS: ReadonlyMap<string, number> = new Map(SHAPES.map((keys, index) => [keys.join(), index]));

/** A number that differs by less from the row's time is packed as a time: 2^31 ms, about 25 days. */
const TIME_RANGE = 2 ** 31;
const IPV4_TEXT = /^(?:(?:0|[1-9]\d?|1\d\d|2[0-4]\d|25[0-5])(?:\.(?!$)|$)){4}$/;
const MAX_IPV4_LENGTH = '255.255.255.255'.length;
const ISO_TEXT = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;
const ISO_LENGTH = '2026-01-15T12:00:00.000Z'.length;

/**
 * Packs what `JSON.stringify` would write for `value`. `time` is the time of the row in epoch ms; unpacking needs the same.
 */
export function packJson(value: unknown, time: number): Buffer {
  return new Packer(time).pack(value);
}

/** The JSON text of a packed value. Throws when the bytes are not a packed value. */
export function unpackJson(packed: Buffer, time: number): string {
  return new Unpacker(packed, time).text();
}

/** One buffer for all values, which are packed synchronously. It grows to the largest value and never shrinks. */
let scratch = Buffer.allocUnsafe(4096);

class Packer {
  readonly #time: number;
  readonly #numbers = new Map<string, number>();
  #at = 0;

  constructor(time: number) {
    this.#time = time;
  }

  pack(value: unknown): Buffer {
    this.#value(value);
    return Buffer.from(scratch.subarray(0, this.#at));
  }

  #value(value: unknown): void {
    if (typeof value === 'string') this.#string(value);
    else if (typeof value === 'number') this.#number(value);
    else if (typeof value === 'boolean') this.#byte(value ? TRUE : FALSE);
    else if (Array.isArray(value)) this.#array(value);
    else if (isObject(value)) this.#object(value);
    else this.#byte(NULL);
  }

  #array(items: readonly unknown[]): void {
    this.#byte(ARRAY);
    this.#varint(items.length);
    for (const item of items) this.#value(item);
  }

  #object(object: Record<string, unknown>): void {
    const keys = Object.keys(object).filter((key) => object[key] !== undefined);
    const shape = shapeOf(keys);
    this.#byte(shape === undefined ? OBJECT : SHAPE);
    this.#varint(shape ?? keys.length);
    for (const key of keys) {
      if (shape === undefined) this.#string(key);
      this.#value(object[key]);
    }
  }

  #number(value: number): void {
    // JSON has neither NaN nor infinities.
    if (!Number.isFinite(value)) this.#byte(NULL);
    else if (!Number.isSafeInteger(value)) this.#double(value);
    else if (value >= 0 && value < SMALL_COUNT) this.#byte(SMALL + value);
    else if (value > TIME_RANGE && Math.abs(value - this.#time) < TIME_RANGE) this.#moment(TIME, value);
    else {
      this.#byte(value < 0 ? NEGATIVE : INTEGER);
      this.#varint(Math.abs(value));
    }
  }

  #double(value: number): void {
    this.#byte(DOUBLE);
    this.#reserve(8);
    this.#at = scratch.writeDoubleBE(value, this.#at);
  }

  #moment(tag: number, moment: number): void {
    const ms = moment - this.#time;
    this.#byte(tag);
    this.#varint(ms < 0 ? -2 * ms - 1 : 2 * ms);
  }

  #string(text: string): void {
    const code = CODES.get(text);
    if (code !== undefined) return this.#byte(code);
    const before = this.#numbers.get(text);
    if (before !== undefined) {
      this.#byte(REPEATED);
      return this.#varint(before);
    }
    if (text.length <= MAX_IPV4_LENGTH && IPV4_TEXT.test(text)) {
      this.#byte(IPV4);
      for (const part of text.split('.')) this.#byte(Number(part));
    } else if (isIsoTimeNear(text, this.#time)) this.#moment(ISO_TIME, Date.parse(text));
    else this.#characters(text);
  }

  #characters(text: string): void {
    this.#numbers.set(text, this.#numbers.size);
    const encoding = text.isWellFormed() ? 'utf8' : 'utf16le';
    const bytes = Buffer.byteLength(text, encoding);
    this.#byte(encoding === 'utf8' ? STRING : STRING_16);
    this.#varint(bytes);
    this.#reserve(bytes);
    this.#at += scratch.write(text, this.#at, bytes, encoding);
  }

  #byte(value: number): void {
    this.#reserve(1);
    scratch[this.#at++] = value;
  }

  /** Seven bits per byte, the lowest first. Divides, because bit operators are limited to 32 bits. */
  #varint(value: number): void {
    let rest = value;
    while (rest >= 0x80) {
      this.#byte((rest % 0x80) | 0x80);
      rest = Math.floor(rest / 0x80);
    }
    this.#byte(rest);
  }

  #reserve(bytes: number): void {
    if (this.#at + bytes <= scratch.length) return;
    const larger = Buffer.allocUnsafe(2 * (this.#at + bytes));
    scratch.copy(larger, 0, 0, this.#at);
    scratch = larger;
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}

/** The number of the shape with these keys. Its keys contain no comma, so equal text and length mean equal lists. */
function shapeOf(keys: readonly string[]): number | undefined {
  const number = SHAPE_NUMBERS.get(keys.join());
  return number !== undefined && SHAPES[number]?.length === keys.length ? number : undefined;
}

/** Whether a text is a time as `toISOString` writes it, less than TIME_RANGE from the row's. */
function isIsoTimeNear(text: string, time: number): boolean {
  if (text.length !== ISO_LENGTH || !ISO_TEXT.test(text)) return false;
  const moment = Date.parse(text);
  return Math.abs(moment - time) < TIME_RANGE && new Date(moment).toISOString() === text;
}

class Unpacker {
  readonly #packed: Buffer;
  readonly #time: number;
  /** The strings that have been read, as JSON. */
  readonly #texts: string[] = [];
  #at = 0;

  constructor(packed: Buffer, time: number) {
    this.#packed = packed;
    this.#time = time;
  }

  text(): string {
    const text = this.#value();
    if (this.#at !== this.#packed.length) throw new Error('packed JSON is followed by other bytes');
    return text;
  }

  /** The JSON text of the next value. */
  #value(): string {
    const tag = this.#byte();
    if (tag >= KNOWN) return this.#known(tag);
    if (tag >= SMALL) return String(tag - SMALL);
    switch (tag) {
      case NULL:
        return 'null';
      case FALSE:
        return 'false';
      case TRUE:
        return 'true';
      case INTEGER:
        return String(this.#varint());
      case NEGATIVE:
        return String(-this.#varint());
      case DOUBLE:
        return String(this.#double());
      case TIME:
        return String(this.#moment());
      case ISO_TIME:
        return `"${new Date(this.#moment()).toISOString()}"`;
      case STRING:
        return this.#string('utf8');
      case STRING_16:
        return this.#string('utf16le');
      case REPEATED:
        return this.#repeated();
      case IPV4:
        return `"${this.#byte()}.${this.#byte()}.${this.#byte()}.${this.#byte()}"`;
      case ARRAY:
        return `[${Array.from({ length: this.#varint() }, () => this.#value()).join()}]`;
      case OBJECT:
        return `{${Array.from({ length: this.#varint() }, () => `${this.#value()}:${this.#value()}`).join()}}`;
      case SHAPE:
        return this.#shaped();
      default:
        throw new Error(`packed JSON has the unknown tag ${tag}`);
    }
  }

  #known(tag: number): string {
    const text = KNOWN_TEXTS[tag - KNOWN];
    if (text === undefined) throw new Error(`packed JSON has the unknown tag ${tag}`);
    return text;
  }

  #shaped(): string {
    const number = this.#varint();
    const keys = SHAPE_TEXTS[number];
    if (keys === undefined) throw new Error(`packed JSON has an object of the unknown shape ${number}`);
    let text = '';
    for (const key of keys) text += (text === '' ? key : `,${key}`) + this.#value();
    return `{${text}}`;
  }

  #string(encoding: 'utf8' | 'utf16le'): string {
    const end = this.#varint() + this.#at;
    if (end > this.#packed.length) throw new Error('packed JSON ends early');
    const text = JSON.stringify(this.#packed.toString(encoding, this.#at, end));
    this.#at = end;
    this.#texts.push(text);
    return text;
  }

  #repeated(): string {
    const number = this.#varint();
    const text = this.#texts[number];
    if (text === undefined) throw new Error(`packed JSON repeats the unknown string ${number}`);
    return text;
  }

  #double(): number {
    this.#at += 8;
    return this.#packed.readDoubleBE(this.#at - 8);
  }

  #moment(): number {
    const coded = this.#varint();
    return this.#time + (coded % 2 === 1 ? -(coded + 1) / 2 : coded / 2);
  }

  #byte(): number {
    const next = this.#packed[this.#at++];
    if (next === undefined) throw new Error('packed JSON ends early');
    return next;
  }

  #varint(): number {
    let value = 0;
    for (let factor = 1; ; factor *= 0x80) {
      const next = this.#byte();
      value += (next & 0x7f) * factor;
      if (next < 0x80) return value;
    }
  }
}
