/**
 * Decodes base64 (RFC 2045 §6.8). Characters outside the alphabet are skipped, and what follows inner padding is
 * decoded as well: some programs encode piece by piece and join the results. Linear in the length.
 */
export function decodeBase64(text: string): Buffer {
  const padding = text.indexOf('=');
  if (padding < 0 || !/[A-Za-z0-9+/]/.test(text.slice(padding))) return Buffer.from(text, 'base64');
  const pieces = text.split(/=+/).map((piece) => Buffer.from(piece, 'base64'));
  return Buffer.concat(pieces);
}
