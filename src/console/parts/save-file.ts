/** Passes content to the browser as a file of the user. */
export function saveFile(fileName: string, content: Blob): void {
  const url = URL.createObjectURL(content);
  const link = document.createElement('a');
  link.href = url;
  link.download = fileName;
  link.click();
  // Browsers read the content of a large file after the click.
  window.setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
