import { useState } from 'preact/hooks';
import type * as z from 'zod';
import type { messageContentSchema } from '../../../http/api/sending/message-content.ts';
import { callApi } from '../../api.ts';
import { useData } from '../../data.ts';
import { StoredFrame } from '../../parts/preview/stored-frame.tsx';
import { saveFile } from '../../parts/save-file.ts';
import { Loaded, Outcome, useAction } from '../../parts.tsx';
import { useMember } from '../../session.ts';
import { useTexts } from '../../texts.ts';
import './message-content.css';

type Content = z.output<typeof messageContentSchema>;

/** What the recipient of a message gets: read when it is opened. */
export function MessageContent({ messageId }: { messageId: string }) {
  const { t } = useTexts();
  const [isOpen, setOpen] = useState(false);
  return (
    <details class="message-content" onToggle={({ currentTarget: { open } }) => setOpen(open)}>
      <summary>{t('messages.content')}</summary>
      {isOpen && <Parts messageId={messageId} />}
    </details>
  );
}

function Parts({ messageId }: { messageId: string }) {
  const { t, size } = useTexts();
  const { accountId } = useMember();
  const path = `/web-setup/messages/${encodeURIComponent(messageId)}`;
  const data = useData<Content>(`${path}/content`);
  const { outcome, run } = useAction();
  const download = () =>
    run(async () => {
      const { source } = await callApi<{ source: string }>(`${path}/source`, { account: accountId });
      saveFile(`${messageId}.eml`, new Blob([source], { type: 'message/rfc822' }));
      return t('messages.content.saved', { file: `${messageId}.eml` });
    });
  return (
    <Loaded data={data}>
      {({ html, text, headers, attachments, size: bytes }) => (
        <>
          <p class="small">{t('messages.content.hint')}</p>
          {html !== null && <StoredFrame title={t('messages.content')} html={html} />}
          {text !== null && (
            <details open={html === null}>
              <summary>{t('messages.content.text')}</summary>
              <pre tabIndex={0}>{text}</pre>
            </details>
          )}
          <details>
            <summary>{t('messages.content.headers')}</summary>
            <dl class="facts">
              {headers.map(({ name, value }, index) => (
                <div key={`${name} ${index}`}>
                  <dt>{name}</dt>
                  <dd>{value}</dd>
                </div>
              ))}
            </dl>
          </details>
          {attachments.length > 0 && (
            <>
              <h4>{t('messages.content.attachments')}</h4>
              <ul>
                {attachments.map(({ name, contentType, size: length }, index) => (
                  <li key={`${name} ${index}`}>
                    {name} ({contentType}, {size(length)})
                  </li>
                ))}
              </ul>
            </>
          )}
          <p>
            <button class="button" type="button" onClick={() => void download()}>
              {t('messages.content.download', { size: size(bytes) })}
            </button>
          </p>
          <Outcome of={outcome} />
        </>
      )}
    </Loaded>
  );
}
