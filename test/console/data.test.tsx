import { describe, expect, it, vi } from 'vitest';
import { request, whenSignedOut } from '../../src/console/api.ts';
import { type Data, useConsoleData, useRefresh } from '../../src/console/data.ts';
import { act, render, waitFor } from './dom/render.tsx';
import { failure, respond, success } from './dom/responses.ts';

let last: Data<unknown>;
function Reader({ path, refreshMs = null }: { path: string | null; refreshMs?: number | null }) {
  last = useConsoleData<unknown>(path);
  useRefresh(last.reload, refreshMs);
  return null;
}

describe('data', () => {
  it('is read again when its path changes, and never that of another path', async () => {
    respond((path) => success(path));
    const replace = await render(<Reader path="/one" />);
    await waitFor(() => expect(last.value).toBe('/one'));
    await replace(<Reader path="/two" />);
    await waitFor(() => expect(last.value).toBe('/two'));
    await replace(<Reader path={null} />);
    expect(last.value).toBeNull();
  });

  it('ends a request that nobody waits for, and ignores its response', async () => {
    const answers: ((response: Response) => void)[] = [];
    const fetched = respond(() => new Promise((resolve) => answers.push(resolve)));
    const replace = await render(<Reader path="/slow" />);
    await replace(<Reader path="/other" />);
    expect(fetched.mock.calls[0]?.[1]?.signal?.aborted).toBe(true);
    expect(fetched.mock.calls[1]?.[1]?.signal?.aborted).toBe(false);
    answers[1]?.(success('other'));
    await waitFor(() => expect(last.value).toBe('other'));
  });

  it('stays when it cannot be read again, with the error', async () => {
    let isDown = false;
    respond(() => (isDown ? failure(503, 'UNAVAILABLE') : success('first')));
    await render(<Reader path="/one" />);
    await waitFor(() => expect(last.value).toBe('first'));
    isDown = true;
    await act(() => last.reload());
    await waitFor(() => expect(last.error?.code).toBe('UNAVAILABLE'));
    expect(last.value).toBe('first');
  });

  it('is read at an interval, but not by a page that nobody sees', async () => {
    vi.useFakeTimers();
    const fetched = respond(() => success('value'));
    await render(<Reader path="/one" refreshMs={1000} />);
    await act(() => vi.advanceTimersByTimeAsync(1000));
    await act(() => vi.advanceTimersByTimeAsync(1000));
    expect(fetched).toHaveBeenCalledTimes(3);
    const hidden = vi.spyOn(document, 'hidden', 'get').mockReturnValue(true);
    await act(() => vi.advanceTimersByTimeAsync(10_000));
    expect(fetched).toHaveBeenCalledTimes(3);
    hidden.mockReturnValue(false);
    await act(() => document.dispatchEvent(new Event('visibilitychange')));
    expect(fetched).toHaveBeenCalledTimes(4);
  });
});

describe('a request', () => {
  it('sends what shows that it is no form of another site, the account, and its body', async () => {
    const fetched = respond(() => success({}));
    await request('/console/x', {
      method: 'PATCH',
      body: { a: 1 },
      account: 'account-1',
      idempotencyKey: 'k',
    });
    const init = fetched.mock.calls[0]?.[1];
    const headers = new Headers(init?.headers);
    expect(init).toMatchObject({ method: 'PATCH', body: '{"a":1}' });
    const names = ['X-Postrider-Console', 'X-Id', 'Content-Type', 'Idempotency-Key', 'X-Unattended'];
    expect(names.map((name) => headers.get(name))).toEqual(['1', 'account-1', 'application/json', 'k', null]);
  });

  it('reports that the session has ended, except where a person signs in', async () => {
    const signedOut = vi.fn();
    whenSignedOut(signedOut);
    respond(() => failure(401, 'UNAUTHENTICATED'));
    await expect(request('/console/session/password')).rejects.toMatchObject({ code: 'UNAUTHENTICATED' });
    expect(signedOut).not.toHaveBeenCalled();
    await expect(request('/console/people')).rejects.toMatchObject({ status: 401 });
    expect(signedOut).toHaveBeenCalledOnce();
  });

  it.each([
    ['no response', () => Promise.reject(new TypeError('failed to fetch'))],
    ['a page of a proxy', () => new Response('<h1>Bad gateway</h1>', { status: 502 })],
  ])('fails as one without an answer: %s', async (_, answer) => {
    respond(answer);
    await expect(request('/console/people')).rejects.toMatchObject({ code: 'NETWORK' });
  });
});
