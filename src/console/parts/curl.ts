/** Paths of operations on the installation: they need a key with the scope `operator`, whose account may be another one. */
const INSTALLATION_PATHS = /^\/web-setup\/(?:accounts|doctor|inbox|installation|queue)(?:[/?]|$)/;

/** A request with a key, as the first arguments of curl. */
export function curlArguments(request: { apiUrl: string; path: string; accountId: string }): string[] {
  const { apiUrl, path, accountId } = request;
  return [
    quoted(`${apiUrl}${path}`),
    INSTALLATION_PATHS.test(path)
      ? '-H "X-Api-Key: $OPERATOR_KEY" -H "X-Id: $ACCOUNT_ID"'
      : `-H "X-Api-Key: $SETUP_KEY" -H ${quoted(`X-Id: ${accountId}`)}`,
  ];
}

/** A text as one argument of a POSIX shell. */
export function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
