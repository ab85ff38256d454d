import { useEffect } from 'preact/hooks';
import { operate } from '../../api.ts';
import { useOperation } from '../../data.ts';
import { addressOf, type DataOf } from '../../operations.ts';
import { FactList } from '../../parts/fact-list.tsx';
import { useHeldActions } from '../../parts/held-action.ts';
import { Icon } from '../../parts/icon/icon.tsx';
import { OperatorsOnly } from '../../parts/operators-only.tsx';
import { saveFile } from '../../parts/save-file.ts';
import { Card, Loaded, Notice, Outcome, Page, useAction } from '../../parts.tsx';
import { useNavigation } from '../../routing.ts';
import { useMember } from '../../session.ts';
import { useTexts } from '../../texts.ts';
import { unreadKey } from './inbox-list.tsx';
import './inbox-mail.css';

const PATH = '/web-setup/installation/inbox/{number}';

type InboxMail = DataOf<typeof PATH>;

/** A received mail, as text: anyone can send it. Opening it marks it as read. */
export function InboxMailPage({ number }: { number: string }) {
  const { t } = useTexts();
  return (
    <OperatorsOnly title={t('page.inbox')}>
      <Mail number={number} />
    </OperatorsOnly>
  );
}

function Mail({ number }: { number: string }) {
  const { t } = useTexts();
  const { href, go } = useNavigation();
  const { accountId } = useMember();
  const request = { account: accountId, parameters: { number } };
  const data = useOperation(PATH, { number });
  const { outcome, run } = useAction();
  const isNew = data.value?.readAt === null;
  useEffect(() => {
    if (isNew)
      void run(async () => {
        await operate('patch', PATH, { ...request, body: { isRead: true } });
        return '';
      });
  }, [number, isNew]);
  const download = () =>
    run(async () => {
      const { source } = await operate('get', '/web-setup/installation/inbox/{number}/source', request);
      const bytes = Uint8Array.from(atob(source), (char) => char.charCodeAt(0));
      saveFile(`${number}.eml`, new Blob([bytes], { type: 'message/rfc822' }));
      return t('messages.content.saved', { file: `${number}.eml` });
    });
  const { hold } = useHeldActions(data.value, data.reload);
  const markUnread = () => {
    go(href('inbox'));
    hold({
      key: unreadKey(number),
      text: t('inbox.markedUnread'),
      action: (options) => operate('patch', PATH, { ...request, body: { isRead: false }, ...options }),
    });
  };
  return (
    <Page
      title={data.value?.subject || t('inbox.noSubject')}
      actions={
        <>
          <button class="button" type="button" onClick={() => void download()}>
            <Icon name="download" />
            {t('inbox.download')}
          </button>
          <button class="button" type="button" onClick={markUnread}>
            {t('inbox.markUnread')}
          </button>
        </>
      }
      curl={addressOf(PATH, { number })}
    >
      <Outcome of={outcome} />
      <Loaded data={data}>{(mail) => <Content of={mail} />}</Loaded>
    </Page>
  );
}

function Content({ of: mail }: { of: InboxMail }) {
  const { t, time } = useTexts();
  const { href } = useNavigation();
  const facts: [string, string][] = [
    [t('messages.sender'), mail.from || mail.sender],
    [t('inbox.envelopeSender'), mail.sender],
    [t('messages.recipientColumn'), mail.recipient],
    [t('inbox.box'), t(`inbox.box.${mail.box}`)],
    [t('inbox.kind'), mail.kind],
    [t('inbox.remoteAddress'), mail.remoteAddress],
    [t('inbox.received'), time(mail.receivedAt)],
  ];
  return (
    <>
      <div class="card">
        <div class="card-body">
          <FactList facts={facts} />
          {mail.messageId !== null && (
            <p>
              <a href={href(`messages/${encodeURIComponent(mail.messageId)}`)}>{t('inbox.message')}</a>
            </p>
          )}
          <details>
            <summary>{t('messages.content.headers')}</summary>
            <dl class="facts">
              {mail.headers.map(({ name, value }, index) => (
                <div key={`${index} ${name}`}>
                  <dt>{name}</dt>
                  <dd class="value">{value}</dd>
                </div>
              ))}
            </dl>
          </details>
        </div>
      </div>
      {mail.isCut && <Notice title={t('inbox.isCut')} />}
      <Card title={t('messages.content.text')}>
        {/* Long mail scrolls within it. */}
        <pre class="mail" tabIndex={0}>
          {mail.text || t('inbox.noText')}
        </pre>
      </Card>
      {mail.attachments.length > 0 && (
        <Card title={t('messages.content.attachments')}>
          <div class="card-body">
            <ul>
              {mail.attachments.map(({ name, contentType }, index) => (
                <li key={`${index} ${name}`}>
                  {name} {contentType}
                </li>
              ))}
            </ul>
            <p class="small">{t('inbox.attachments.hint')}</p>
          </div>
        </Card>
      )}
    </>
  );
}
