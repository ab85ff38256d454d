/**
 * Limits on how much of a received mail is parsed. The rest is ignored and never an error: most reports are far below
 * all limits. Every limit bounds work, so that time is linear in the size of the mail, whatever its content.
 */
export interface IncomingLimits {
  /** Bytes of the whole mail. */
  mailBytes: number;
  /** MIME parts, all levels together. */
  parts: number;
  /** Levels of multipart within multipart. */
  depth: number;
  /** Bytes of one header block. */
  headerBytes: number;
  /** Fields of one header block. */
  headerFields: number;
  /** Characters of one header field's value. */
  fieldChars: number;
  /** Repeated spaces in header fields are kept, else they count as one. */
  keepsSpaces: boolean;
  /** Decoded bytes of all text parts together, and of all delivery-status parts. */
  textBytes: number;
  /** Lines of the notice, all text parts together. */
  noticeLines: number;
  /** Attachments that are opened to find a report. */
  attachments: number;
  /** Bytes of all opened attachments, after decoding and decompressing. */
  reportBytes: number;
  /** Decompressed bytes for each compressed byte of an attachment; below `ratioFreeBytes` any ratio is allowed. */
  reportRatio: number;
  ratioFreeBytes: number;
  /** Tags, comments and sections of one XML report. A record has about 60 tags. */
  xmlTags: number;
  /** Characters of one XML tag with its attributes. */
  xmlTagChars: number;
  /** Characters of a TLS report, and its levels of nesting. Real ones have a few thousand, and six. */
  jsonChars: number;
  jsonDepth: number;
  /** Recipients reported in one mail. */
  reports: number;
  /** Records of one aggregate report. */
  records: number;
  /** Policies of one TLS report. A report is about one domain (RFC 8460 §3), which has one or two. */
  policies: number;
  /** Rows of sums returned of one report. */
  reportRows: number;
}

export const INCOMING_LIMITS: IncomingLimits = {
  mailBytes: 50 * 1024 * 1024,
  parts: 100,
  depth: 8,
  headerBytes: 256 * 1024,
  headerFields: 1000,
  fieldChars: 16 * 1024,
  keepsSpaces: false,
  textBytes: 512 * 1024,
  noticeLines: 5000,
  attachments: 3,
  reportBytes: 10 * 1024 * 1024,
  reportRatio: 200,
  ratioFreeBytes: 1024 * 1024,
  xmlTags: 800_000,
  xmlTagChars: 4000,
  jsonChars: 1024 * 1024,
  jsonDepth: 20,
  reports: 100,
  records: 10_000,
  policies: 100,
  reportRows: 200,
};
