import { useEffect, useState } from 'preact/hooks';
import { ApiError, request } from '../../api.ts';
import { Failure } from '../../parts.tsx';
import { useMember } from '../../session.ts';
import { useTexts } from '../../texts.ts';
import './preview.css';

interface StoredFrameProps {
  title: string;
  html: string;
}

/**
 * HTML in a frame that runs no scripts and loads nothing from elsewhere: the console stores it for some minutes as a
 * separate document with another policy.
 */
export function StoredFrame({ title, html }: StoredFrameProps) {
  const { t } = useTexts();
  const { accountId } = useMember();
  const [id, setId] = useState<string | null>(null);
  const [error, setError] = useState<ApiError | null>(null);
  useEffect(() => {
    const abort = new AbortController();
    storeHtml(html, accountId, abort.signal).then(setId, (failure: unknown) => {
      if (abort.signal.aborted) return;
      if (!(failure instanceof ApiError)) throw failure;
      setError(failure);
    });
    return () => abort.abort();
  }, [html, accountId]);
  if (error !== null) return <Failure error={error} />;
  return id === null ? (
    <p class="loading" role="status">
      {t('app.loading')}
    </p>
  ) : (
    <div class="preview">
      <iframe key={id} title={title} class="desktop" sandbox="" src={frameAddress(id)} />
    </div>
  );
}

/** Stores HTML as a document for a frame; returns its id. */
export async function storeHtml(html: string, account: string, signal: AbortSignal): Promise<string> {
  const body = { html };
  const { id } = await request<{ id: string }>('/console/previews', {
    method: 'POST',
    account,
    body,
    signal,
  });
  return id;
}

/** The address of stored HTML. */
export function frameAddress(id: string): string {
  return `/console/previews/${encodeURIComponent(id)}`;
}
