/**
 * Makes a message larger than what the sockets of this machine buffer while the receiver reads nothing: almost the 2 MiB
 * that attachments may have.
 */
export const LARGE_ATTACHMENT = {
  name: 'a.bin',
  contentType: 'application/octet-stream',
  content: 'A'.repeat(2_700_000),
};
