import { createJsonScan } from '../../core/json-scan.ts';
import { type Refusal, refuse } from '../../core/refusal.ts';
import {
  type ConsentInput,
  customFieldsFault,
  type Parsed,
  type ProfileChanges,
  readDetails,
  readEmail,
  readIpAddress,
  readLanguage,
  readMethod,
  readMoment,
  readName,
  readPhone,
  readUserAgent,
} from '../profile.ts';
import { csvFields, delimiterOf, type ImportRecord } from './records.ts';

/**
 * A record of an import as a profile, or the reason why it is rejected. Columns are mapped to fields, and values are
 * parsed by the same rules as in the API. A reason never has a value of the row, because reasons are stored and
 * displayed.
 */
export type ImportRow = Readable | Unreadable;

interface Readable {
  line: number;
  profile: ProfileChanges;
  /** Of a file that has the groups of each person. */
  memberships?: readonly ImportMembership[];
}

/** What a person has chosen for a group in another system. */
export interface ImportMembership {
  /** Null: a group that a dry run does not create. */
  groupId: string | null;
  /** False: the person has left the group, which is recorded as an opt-out. */
  isActive: boolean;
  /** About the consent or the opt-out. */
  details: string;
}

interface Unreadable {
  line: number;
  reason: string;
}

export interface RowReader {
  /** Unknown columns or fields of the records read so far; at most 50. */
  ignored: ReadonlySet<string>;
  /** Whether there are more of them. */
  ignoredTruncated(): boolean;
  read(record: ImportRecord): ImportRow;
}

/** Options of the row reader. By default every row with an identifier is accepted and unknown columns are ignored. */
export interface RowOptions {
  /** Rejects unknown columns and fields: the header of a CSV, the row of NDJSON. */
  rejectUnknown?: boolean;
  /** Rows without an email are rejected. */
  requireEmail?: boolean;
  /** Fields by the names of columns in the file; null: the column is not read. */
  columns?: ReadonlyMap<string, string | null>;
}

/** The canonical name of a field; null when it is neither a field of a contact nor `customFields.<name>`. */
export function fieldNamed(name: string): string | null {
  const field = columnOf(name.trim());
  return field === CUSTOM_PREFIX ? null : field;
}

/** Narrows a row to one with a profile; false: the row is rejected and has a `reason`. */
export function isReadable(row: ImportRow): row is Readable {
  return 'profile' in row;
}

const FIELDS = [
  'email',
  'phone',
  'firstName',
  'lastName',
  'language',
  'consentMethod',
  'consentDetails',
  'consentIpAddress',
  'consentUserAgent',
  'consentTimestamp',
  'globalStatus',
  'isActive',
] as const;
type Field = (typeof FIELDS)[number];

const CUSTOM_FIELDS = 'customFields';
const CUSTOM_PREFIX = 'customfields.';
/** A contact has at most a thousand custom fields; further columns may be unknown. */
const MAX_COLUMNS = 2000;
/** Maximum number of unknown names that are reported. */
export const MAX_IGNORED = 50;
const MAX_LISTED = 20;

/** `First Name`, `first_name` and `firstName` are one column. Names of `email` in other programs: EMAIL_COLUMNS. */
const BY_COLUMN = new Map(FIELDS.map((field) => [field.toLowerCase(), field]));

/** Creates a reader from the header of a CSV; a string: why the header is invalid. */
export function csvRowReader(
  header: ImportRecord,
  options: RowOptions = {},
  delimiter = delimiterOf(header.text),
): RowReader | Refusal | string {
  if (header.fault !== null) return `the header ${header.fault}`;
  const ignored = new Set<string>();
  let truncated = false;
  const names = csvFields(header.text, delimiter).map((name) => name.trim());
  if (names.length > MAX_COLUMNS) return `the header names more than ${MAX_COLUMNS} columns`;
  const service = suppressionExport(names);
  if (service !== null) return suppressionFile(service);
  const given = options.columns ?? new Map<string, string | null>();
  const inHeader = new Set(names);
  const absent = [...given.keys()].filter((name) => !inHeader.has(name));
  if (absent.length > 0) return `the header has no column ${listed(absent)}; it has ${listed(names)}`;
  // Another name of email counts if no column has its own name.
  let hasEmail =
    [...given.values()].includes('email') ||
    names.some((name) => !given.has(name) && columnOf(name) === 'email');
  const alias = (name: string) => {
    if (hasEmail || !isEmailColumn(name)) return null;
    hasEmail = true;
    return 'email';
  };
  const columns = names.map((name) => {
    const assigned = given.get(name);
    const column = assigned === undefined ? (columnOf(name) ?? alias(name)) : assigned;
    if (column === null && assigned === undefined && name !== '')
      truncated = !remember(ignored, name) || truncated;
    return column;
  });
  const known = columns.filter((column) => column !== null);
  const seen = new Set<string>();
  const duplicate = known.find((column) => seen.size === seen.add(column).size);
  if (duplicate !== undefined) return `the header names ${duplicate} twice`;
  if (!known.includes('email') && !known.includes('phone'))
    return `the header names neither email nor phone; its columns are ${listed(names)}`;
  if (options.rejectUnknown === true && ignored.size > 0)
    return `the header has unknown columns: ${listed(ignored)}`;
  if (options.requireEmail === true && !known.includes('email')) return 'the header has phone, but no email';
  return {
    ignored,
    ignoredTruncated: () => truncated,
    read: ({ line, text, fault }) => {
      if (fault !== null) return { line, reason: fault };
      const values = csvFields(text, delimiter);
      if (values.length !== columns.length)
        return { line, reason: `has ${values.length} columns, the header has ${columns.length}` };
      const fields: Record<string, unknown> = {};
      const custom: Record<string, unknown> = {};
      for (const [index, column] of columns.entries()) {
        const value = values[index]?.trim() ?? '';
        // An empty cell never removes a value.
        if (column === null || value === '') continue;
        if (column.startsWith(CUSTOM_PREFIX)) custom[column.slice(CUSTOM_PREFIX.length)] = value;
        else fields[column] = value;
      }
      const customFields = Object.keys(custom).length === 0 ? undefined : custom;
      return profileOf(line, fields, customFields, options);
    },
  };
}

function suppressionFile(service: ServiceName): Refusal {
  const message = `The columns are those of an export of suppressions of ${SERVICE_NAMES[service]}: these people cannot or do not want to be reached, and are not imported as contacts. Import the file as suppressions: POST /web-setup/suppressions/import, or postrider suppressions import`;
  return refuse('SUPPRESSION_FILE', message, {
    details: [{ field: 'body', message: 'is an export of suppressions' }],
  });
}

/** Names of the column of addresses in exports of other programs, without separators, accents and case. */
const EMAIL_COLUMNS: ReadonlySet<string> = new Set(
  [
    'email emailaddress emailaddresses emailaddr emailid mail mailaddress mailid mails emails subscriberemail contactemail customeremail useremail primaryemail',
    'recipientemail workemail businessemail personalemail electronicmail electronicmailaddress email1 emailaddress1 email1value',
    'emailadresse emailadressen emailadres mailadresse mailadres emailanschrift elektronischepost',
    'adresseemail adressemail adresseelectronique courriel adressecourriel adressedecourriel adressedemessagerie mel courrierelectronique',
    'correo correoelectronico direccionemail direcciondecorreo direcciondecorreoelectronico direccionelectronica direccioncorreo',
    'indirizzoemail indirizzomail indirizzodiemail indirizzodipostaelettronica postaelettronica indirizzoelettronico',
    'enderecoemail enderecodeemail enderecodecorreioeletronico correioeletronico correioelectronico enderecoeletronico',
    'epost epostadress epostadresse epostaddress epostaadresi eposta epostasi elektronikposta mailadresi emailadresi',
    'adresemail adresemailowy pocztaelektroniczna emailovaadresa adresaemail emailadresa sahkoposti sahkopostiosoite emailcim adresadeemail postaelectronica',
    'электроннаяпочта адресэлектроннойпочты почта элпочта емейл имейл електроннапошта електроннаадреса',
    '电子邮件 电子邮件地址 电子邮箱 邮箱 邮箱地址 邮件 邮件地址 電子郵件 電子郵件地址 電子信箱 信箱',
    'メールアドレス メール eメール eメールアドレス 이메일 이메일주소 메일 メアド',
  ].flatMap((line) => line.split(' ').map(foldedName)),
);

function isEmailColumn(name: string): boolean {
  return EMAIL_COLUMNS.has(foldedName(name));
}

function foldedName(name: string): string {
  return name
    .slice(0, 80)
    .normalize('NFKD')
    .toLowerCase()
    .replaceAll(/[\p{M}\s_.\-‐‑–:*'’()/]/gu, '')
    .replaceAll('ı', 'i');
}

function columnOf(name: string): string | null {
  if (name.toLowerCase().startsWith(CUSTOM_PREFIX)) return CUSTOM_PREFIX + name.slice(CUSTOM_PREFIX.length);
  return BY_COLUMN.get(name.toLowerCase().replaceAll(/[\s_-]/g, '')) ?? null;
}

/** Creates a reader of objects with the fields of the API; the limits of JSON bodies apply to each of them. */
export function ndjsonRowReader(options: RowOptions = {}): RowReader {
  const ignored = new Set<string>();
  let truncated = false;
  const { columns } = options;
  return {
    ignored,
    ignoredTruncated: () => truncated,
    read: ({ line, text, fault }) => {
      if (fault !== null) return { line, reason: fault };
      const excess = createJsonScan().push(Buffer.from(text));
      if (excess !== null) return { line, reason: excess.extras.details?.[0]?.message ?? excess.message };
      const value = parseObject(text);
      if (value === null) return { line, reason: 'is not a JSON object' };
      const fields: Record<string, unknown> = {};
      const custom: Record<string, unknown> = {};
      const unknown = new Set<string>();
      for (const [name, inner] of Object.entries(value)) {
        const assigned = columns?.get(name);
        if (assigned === null) continue;
        const field = assigned ?? FIELDS.find((known) => known === name);
        if (field === undefined && name !== CUSTOM_FIELDS) remember(unknown, name);
        if (field === undefined || inner === null) continue;
        if (field.startsWith(CUSTOM_PREFIX)) custom[field.slice(CUSTOM_PREFIX.length)] = inner;
        else fields[field] = inner;
      }
      for (const name of unknown) truncated = !remember(ignored, name) || truncated;
      if (options.rejectUnknown === true && unknown.size > 0)
        return { line, reason: `has unknown fields: ${listed(unknown)}` };
      return profileOf(line, fields, mergedCustomFields(value[CUSTOM_FIELDS], custom), options);
    },
  };
}

/** Mapped fields next to those of the row itself, which need not be an object yet. */
function mergedCustomFields(given: unknown, mapped: Record<string, unknown>): unknown {
  if (Object.keys(mapped).length === 0) return given ?? undefined;
  return typeof given === 'object' && given !== null && !Array.isArray(given)
    ? { ...given, ...mapped }
    : mapped;
}

/** A list of names from a file for a message: a few, each short and on one line. */
function listed(names: Iterable<string>): string {
  const all = [...names].map(
    (name) =>
      `"${name
        .trim()
        .slice(0, 80)
        .replaceAll(/\p{Cc}/gu, ' ')}"`,
  );
  const shown = all.slice(0, MAX_LISTED).join(', ');
  return all.length > MAX_LISTED ? `${shown} and ${all.length - MAX_LISTED} more` : shown;
}

function parseObject(text: string): Record<string, unknown> | null {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    // The parser's message would quote the text.
    return null;
  }
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Record<string, unknown>)
    : null;
}

/** Parses each field; the first invalid one is the reason. */
function profileOf(
  line: number,
  fields: Partial<Record<Field, unknown>>,
  customFields: unknown,
  { requireEmail = false }: RowOptions,
): ImportRow {
  let reason: string | null = null;
  const read = <Value>(field: Field, reader: (text: string) => Parsed<Value>): Value | undefined => {
    const value = fields[field];
    if (value === undefined || reason !== null) return undefined;
    const text = field === 'isActive' ? textOfFlag(value) : value;
    const result = typeof text === 'string' ? reader(text) : { fault: 'must be a string' };
    if ('value' in result) return result.value;
    reason = `${field}: ${result.fault}`;
    return undefined;
  };
  const profile: ProfileChanges = {
    email: read('email', readEmail),
    phone: read('phone', readPhone),
    firstName: read('firstName', readName),
    lastName: read('lastName', readName),
    language: read('language', readLanguage),
    consent: consentOf({
      method: read('consentMethod', readMethod),
      details: read('consentDetails', readDetails),
      ipAddress: read('consentIpAddress', readIpAddress),
      userAgent: read('consentUserAgent', readUserAgent),
      consentedAt: read('consentTimestamp', readMoment),
    }),
  };
  read('globalStatus', readImportedStatus);
  read('isActive', readImportedMembership);
  if (reason !== null) return { line, reason };
  if (fields.email === undefined && fields.phone === undefined)
    return { line, reason: 'has neither email nor phone' };
  if (requireEmail && fields.email === undefined) return { line, reason: 'has a phone, but no email' };
  if (customFields !== undefined) {
    const fault = customFieldsFault(customFields);
    if (fault !== null) {
      const path = [CUSTOM_FIELDS, fault.path].filter((part) => part !== '').join('.');
      return { line, reason: `${path}: ${fault.message}` };
    }
    // Sound: `customFieldsFault` has checked it.
    profile.customFields = customFields as Record<string, unknown>;
  }
  return { line, profile };
}

/** A list from another system may have people who left it: an import must not make them recipients. */
function readImportedStatus(text: string): Parsed<'active'> {
  if (text.toLowerCase() === 'active') return { value: 'active' };
  return {
    fault:
      'only "active" contacts are imported; add a suppression for a person who has left (POST /web-setup/suppressions, postrider suppression add)',
  };
}

/** A row of `GET …/subscriptions` may be that of a person who left the group. */
function readImportedMembership(text: string): Parsed<true> {
  const flag = text.trim().toLowerCase();
  if (TRUE.includes(flag)) return { value: true };
  return {
    fault: FALSE.includes(flag)
      ? 'only active members are imported; record that a person has left a group with PUT /web-setup/contacts/subscription-groups/{subscriptionGroupId}/subscriptions/{identifier} and isActive false'
      : 'must be true or false',
  };
}

const TRUE: readonly string[] = ['true', '1', 'yes'];
const FALSE: readonly string[] = ['false', '0', 'no'];

/** NDJSON has booleans and numbers where a CSV has their text. */
function textOfFlag(value: unknown): unknown {
  return typeof value === 'boolean' || typeof value === 'number' ? String(value) : value;
}

/** Undefined when the row has no field of consent. */
function consentOf(input: ConsentInput): ConsentInput | undefined {
  return Object.values(input).every((value) => value === undefined) ? undefined : input;
}

/** Returns false if there are too many names already. */
function remember(names: Set<string>, name: string): boolean {
  const kept = name.slice(0, 80);
  if (names.size < MAX_IGNORED) names.add(kept);
  return names.has(kept);
}

const SERVICE_NAMES = {
  sendgrid: 'SendGrid',
  mailgun: 'Mailgun',
  postmark: 'Postmark',
  ses: 'Amazon SES',
};
export type ServiceName = keyof typeof SERVICE_NAMES;

/** Columns with the address, as `foldedColumn` writes them. */
export const ADDRESS_COLUMNS = ['email', 'emailaddress', 'address', 'recipient'];

/**
 * The service whose export of suppressions has these columns, without case and separators; null: it is not one. An import
 * of it as contacts would make recipients of people who cannot or do not want to be reached.
 */
export function suppressionExport(names: readonly string[]): ServiceName | null {
  const columns = new Set(names.map(foldedColumn));
  const has = (...all: string[]) => all.every((name) => columns.has(name));
  if (!ADDRESS_COLUMNS.some((name) => columns.has(name))) return null;
  if (has('suppressionreason') || has('bouncedat') || has('reason', 'origin'))
    return has('lastupdatetime') ? 'ses' : 'postmark';
  if (has('type', 'typecode') || has('type', 'messageid', 'inactive')) return 'postmark';
  if (has('lastupdatetime') || has('reason', 'lastupdated') || has('reason', 'lastupdatedtime')) return 'ses';
  if (has('address') && (has('createdat') || has('code', 'error'))) return 'mailgun';
  if (has('reason', 'created') || has('ip', 'created') || has('status', 'reason')) return 'sendgrid';
  if (has('created') && columns.size === 2) return 'sendgrid';
  return null;
}

/** A name of a column without case and separators. */
export function foldedColumn(name: string): string {
  return name.toLowerCase().replaceAll(/[\s_.\-()/"*:]/g, '');
}
