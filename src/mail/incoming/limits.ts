/**
 * Limits on how much of a received mail is parsed. The rest is ignored and never an error: most reports are far below
 * all limits. Every limit bounds work, so that time is linear in the size of the mail, whatever its content.
 */
export const INCOMING_LIMITS = {
  /** Bytes of the whole mail. */
  mailBytes: 50 * 1024 * 1024,
  /** MIME parts, all levels together. */
  parts: 100,
  /** Levels of multipart within multipart. */
  depth: 8,
  /** Bytes of one header block. */
  headerBytes: 256 * 1024,
  /** Fields of one header block. */
  headerFields: 1000,
  /** Characters of one header field's value. */
  fieldChars: 16 * 1024,
  /** Repeated spaces in header fields are kept, else they count as one. */
  keepsSpaces: false as boolean,
  /** Decoded bytes of all text parts together, and of all delivery-status parts. */
  textBytes: 512 * 1024,
  /** Lines of the notice, all text parts together. */
  noticeLines: 5000,
  /** Attachments that are opened to find a report. */
  attachments: 3,
  /** Bytes of all opened attachments, after decoding and decompressing. */
  reportBytes: 10 * 1024 * 1024,
  /** Decompressed bytes for each compressed byte of an attachment; below `ratioFreeBytes` any ratio is allowed. */
  reportRatio: 200,
  ratioFreeBytes: 1024 * 1024,
  /** Tags, comments and sections of one XML report. A record has about 60 tags. */
  xmlTags: 800_000,
  /** Characters of one XML tag with its attributes. */
  xmlTagChars: 4000,
  /** Characters of a TLS report, and its levels of nesting. Real ones have a few thousand, and six. */
  jsonChars: 1024 * 1024,
  jsonDepth: 20,
  /** Recipients reported in one mail. */
  reports: 100,
  /** Records of one aggregate report. */
  records: 10_000,
  /** Policies of one TLS report. A report is about one domain (RFC 8460 §3), which has one or two. */
  policies: 100,
  /** Rows of sums returned of one report. */
  reportRows: 200,
};

export type IncomingLimits = Readonly<typeof INCOMING_LIMITS>;
