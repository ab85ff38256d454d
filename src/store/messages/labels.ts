/*
 * Tags and metadata of a message, which its sender chooses: JSON in the column `messages.labels`, null without any. The table
 * `message_tags` finds the messages with a tag.
 */

export interface Labels {
  /** Each once, in the order of the request. */
  tags?: readonly string[];
  metadata?: Readonly<Record<string, string>>;
}

/** The stored form; null: there are none. */
export function writeLabels({ tags = [], metadata = {} }: Labels): string | null {
  const hasMetadata = Object.keys(metadata).length > 0;
  if (tags.length === 0 && !hasMetadata) return null;
  return JSON.stringify({ ...(tags.length === 0 ? {} : { tags }), ...(hasMetadata ? { metadata } : {}) });
}

export function readLabels(labels: string | null): Labels {
  // Sound: only `writeLabels` writes the column.
  return labels === null ? {} : (JSON.parse(labels) as Labels);
}
