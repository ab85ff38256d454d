import { type Mock, vi } from 'vitest';

/** A response of the console's listener: `data` of a success, or a failure. */
export function success(data: unknown): Response {
  return Response.json({ success: true, data });
}

/** A failure with the first of its details. */
export function failure(
  status: number,
  code: string,
  detail: Readonly<Record<string, string>> = {},
): Response {
  const error = { code, message: `The server refused: ${code}`, details: [detail] };
  return Response.json({ success: false, error, requestId: 'request-1' }, { status });
}

/** Answers the requests of a test in place of the server; the mock has them. `body`: as it was sent, '' for none. */
export function respond(
  answer: (path: string, body: string) => Response | Promise<Response>,
): Mock<typeof fetch> {
  const fetched = vi.fn<typeof fetch>(async (input, init) =>
    answer(typeof input === 'string' ? input : '', typeof init?.body === 'string' ? init.body : ''),
  );
  vi.stubGlobal('fetch', fetched);
  return fetched;
}
