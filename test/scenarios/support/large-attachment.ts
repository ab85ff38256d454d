/**
 * Makes a message larger than the socket buffers, so that sending waits until the receiver reads: almost the 2 MiB that
 * attachments may have.
 */
export const LARGE_ATTACHMENT = {
  name: 'a.bin',
  contentType: 'application/octet-stream',
  content: 'A'.repeat(2_700_000),
};
