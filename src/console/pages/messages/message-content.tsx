import { useState } from 'preact/hooks';
import { operate } from '../../api.ts';
import { useOperation } from '../../data.ts';
import type { DataOf } from '../../operations.ts';
import { StoredFrame } from '../../parts/preview/stored-frame.tsx';
import { saveFile } from '../../parts/save-file.ts';
import { TabList } from '../../parts/tabs.tsx';
import { Loaded, Outcome, useAction } from '../../parts.tsx';
import { useMember } from '../../session.ts';
import { useTexts } from '../../texts.ts';
import './message-content.css';

type Content = DataOf<'/web-setup/messages/{id}/content'>;
const VIEWS = ['preview', 'text', 'html', 'headers'] as const;
type View = (typeof VIEWS)[number];

/** What the recipient of a message gets: read when a tab is chosen. */
export function MessageContent({ messageId }: { messageId: string }) {
  const { t } = useTexts();
  const [view, setView] = useState<View | null>(null);
  return (
    <section class="message-content">
      <h3>{t('messages.content')}</h3>
      <TabList
        label={t('messages.content')}
        tabs={VIEWS.map((name) => ({ name, text: t(`messages.content.${name}`) }))}
        chosen={view}
        onChoose={setView}
      >
        {view !== null && <Parts messageId={messageId} view={view} />}
      </TabList>
      {view === null && <p class="small">{t('messages.content.hint')}</p>}
    </section>
  );
}

function Parts({ messageId, view }: { messageId: string; view: View }) {
  const { t, size } = useTexts();
  const { accountId } = useMember();
  const data = useOperation('/web-setup/messages/{id}/content', { id: messageId });
  const { outcome, run } = useAction();
  const download = () =>
    run(async () => {
      const { source } = await operate('get', '/web-setup/messages/{id}/source', {
        account: accountId,
        parameters: { id: messageId },
      });
      saveFile(`${messageId}.eml`, new Blob([source], { type: 'message/rfc822' }));
      return t('messages.content.saved', { file: `${messageId}.eml` });
    });
  return (
    <Loaded data={data}>
      {(content) => (
        <>
          <Part of={content} view={view} />
          {content.attachments.length > 0 && (
            <>
              <h4>{t('messages.content.attachments')}</h4>
              <ul>
                {content.attachments.map(({ name, contentType, size: length }, index) => (
                  <li key={`${name} ${index}`}>
                    {name} ({contentType}, {size(length)})
                  </li>
                ))}
              </ul>
            </>
          )}
          <p>
            <button class="button" type="button" onClick={() => void download()}>
              {t('messages.content.download', { size: size(content.size) })}
            </button>
          </p>
          <Outcome of={outcome} />
        </>
      )}
    </Loaded>
  );
}

function Part({ of: { html, text, headers }, view }: { of: Content; view: View }) {
  const { t } = useTexts();
  if (view === 'headers')
    return (
      <dl class="facts">
        {headers.map(({ name, value }, index) => (
          <div key={`${name} ${index}`}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
    );
  if (view === 'text')
    return text === null ? <p>{t('messages.content.noText')}</p> : <pre tabIndex={0}>{text}</pre>;
  if (html === null) return <p>{t('messages.content.noHtml')}</p>;
  return view === 'html' ? (
    <pre tabIndex={0}>{html}</pre>
  ) : (
    <StoredFrame title={t('messages.content')} html={html} />
  );
}
