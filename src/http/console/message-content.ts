import { refuse } from '../../core/refusal.ts';
import { escapeHtml } from '../../mail/html/escape.ts';
import { type HttpResponse, refusalResponse } from '../responses.ts';
import type { Handler, RoutedRequest } from '../router.ts';

/*
 * The HTML part of a message as it was sent, for a frame in the page of the message. The policy forbids scripts, forms and
 * everything from other hosts, such as images that would count as opens; `sandbox` isolates it from the origin of the console.
 */

const HEADERS: Readonly<Record<string, string>> = {
  'Content-Security-Policy':
    "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'self'",
  'X-Frame-Options': 'SAMEORIGIN',
};

/** The operation of the API with the content of a message. */
export const CONTENT_OPERATION = 'getMessageContent';

/** `content`: the handler of CONTENT_OPERATION. */
export function messageContentHandler(content: Handler): Handler {
  return async (incoming) => {
    if (!isFrame(incoming))
      return refusalResponse(
        refuse('INSUFFICIENT_SCOPE', 'The content of a message is shown in its page only'),
        incoming.requestId,
      );
    const reply = await content(incoming);
    return reply === null || reply.status !== 200 ? reply : pageOf(reply);
  };
}

/** Browsers that do not send Sec-Fetch-Dest apply `frame-ancestors` and `sandbox`. */
function isFrame({ req: { headers } }: RoutedRequest): boolean {
  const destination = headers['sec-fetch-dest'];
  return destination === undefined || destination === 'iframe';
}

function pageOf({ body, headers }: HttpResponse): HttpResponse {
  // Sound: the body of a success of CONTENT_OPERATION.
  const { data } = JSON.parse(String(body)) as { data: { html?: string | null; text?: string | null } };
  return {
    status: 200,
    contentType: 'text/html; charset=utf-8',
    body: data.html ?? `<!doctype html><meta charset="utf-8"><pre>${escapeHtml(data.text ?? '')}</pre>`,
    headers: { ...headers, ...HEADERS },
  };
}
