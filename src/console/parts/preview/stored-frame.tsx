import { useEffect, useState } from 'preact/hooks';
import { ApiError } from '../../api.ts';
import { Failure } from '../../parts.tsx';
import { useMember } from '../../session.ts';
import { useTexts } from '../../texts.ts';
import { MailFrame } from './mail-frame.tsx';
import { storeHtml } from './stored-html.ts';

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
    <MailFrame id={id} title={title} html={html} />
  );
}
