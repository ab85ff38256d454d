import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { operate, saveExport } from '../../api.ts';
import { useOperation } from '../../data.ts';
import { addressOf, type DataOf } from '../../operations.ts';
import { DeletionMenu } from '../../parts/deletion-menu.tsx';
import { FactList } from '../../parts/fact-list.tsx';
import { Icon } from '../../parts/icon/icon.tsx';
import { StoredFrame } from '../../parts/preview/stored-frame.tsx';
import { TabList } from '../../parts/tabs.tsx';
import { toast } from '../../parts/toast.tsx';
import { Card, Loaded, Notice, Outcome, Page, Table, useAction } from '../../parts.tsx';
import { useNavigation } from '../../routing.ts';
import { useMember } from '../../session.ts';
import { useTexts } from '../../texts.ts';
import { AuthenticationChips } from './authentication.tsx';
import { ROUTES } from './tabs.tsx';
import './inbound.css';

const PATH = '/web-setup/inbound/{inboundId}';
const SOURCE = `${PATH}/raw` as const;
const ATTACHMENT = `${PATH}/attachments/{n}` as const;

type Mail = DataOf<typeof PATH>;
type Attachment = Mail['attachments'][number];

/** A received mail. A stranger wrote all of it: its HTML is shown only in a frame without scripts, and its files are only saved. */
export function InboundMailPage({ inboundId }: { inboundId: string }) {
  const { t } = useTexts();
  const { href, go } = useNavigation();
  const { accountId, may } = useMember();
  const data = useOperation(PATH, { inboundId });
  const { outcome, run } = useAction();
  const title = data.value?.subject || t('inbox.noSubject');
  const save = (path: string, file: string) =>
    run(async () => {
      await saveExport(`/console/api${path}`, file, accountId);
      return t('messages.content.saved', { file });
    });
  const remove = () =>
    run(async () => {
      await operate('delete', PATH, { account: accountId, parameters: { inboundId } });
      go(href('inbound'));
      toast(t('app.deleted'));
      return '';
    });
  return (
    <Page
      title={data.value === null ? t('page.inbound') : title}
      curl={addressOf(PATH, { inboundId })}
      actions={
        data.value !== null && (
          <>
            <button
              class="button"
              type="button"
              onClick={() => void save(addressOf(SOURCE, { inboundId }), `${inboundId}.eml`)}
            >
              <Icon name="download" />
              {t('inbox.download')}
            </button>
            {may('deleteInboundMail') && (
              <DeletionMenu
                name={title}
                label={t('inbound.delete')}
                question={t('inbound.delete.confirm')}
                remove={remove}
              />
            )}
          </>
        )
      }
    >
      <Outcome of={outcome} />
      <Loaded data={data}>
        {(mail) => (
          <>
            <Warnings of={mail} />
            <Facts of={mail} />
            {mail.status === 'parsed' && <Content of={mail} />}
            {mail.attachments.length > 0 && (
              <Attachments
                of={mail.attachments}
                onSave={(n, file) => void save(addressOf(ATTACHMENT, { inboundId, n }), file)}
              />
            )}
          </>
        )}
      </Loaded>
    </Page>
  );
}

/** What a reader must know before reading. */
function Warnings({ of: { status, parseError, authentication, loop } }: { of: Mail }) {
  const { t } = useTexts();
  return (
    <>
      {status === 'received' && <Notice title={t('inbound.waiting.title')} />}
      {authentication?.dmarc === 'fail' && (
        <Notice kind="bad" title={t('inbound.forged')}>
          <p>{t('inbound.forged.hint')}</p>
        </Notice>
      )}
      {parseError !== null && (
        <Notice kind="warn" title={t(`inbound.parseError.${parseError}`)}>
          <p>{t('inbound.parseError.hint')}</p>
        </Notice>
      )}
      {loop && <Notice kind="warn" title={t('inbound.loop.title')} />}
    </>
  );
}

function Facts({ of: mail }: { of: Mail }) {
  const { t, time, size } = useTexts();
  const { href } = useNavigation();
  const { authentication, inReplyToMessageId: answered, automatic, routeId } = mail;
  const route = useOperation(`${ROUTES}/{routeId}`, { routeId }).value?.route.name ?? routeId;
  const facts: [string, ComponentChildren][] = [
    [t('messages.sender'), mail.from],
    [t('messages.recipientColumn'), mail.to.join(', ')],
    [t('inbox.received'), time(mail.receivedAt)],
    [t('inbound.authentication'), authentication !== null && <AuthenticationChips of={authentication} />],
    [t('inbound.dmarcPolicy'), authentication?.dmarcPolicy],
    [t('inbound.dkimDomains'), authentication?.dkimDomains.join(', ')],
    [t('inbound.spfDomain'), authentication?.spfDomain],
    [
      t('inbound.answers'),
      answered !== null && <a href={href(`messages/${encodeURIComponent(answered)}`)}>{answered}</a>,
    ],
    [t('inbox.kind'), automatic !== null && t(`inbound.automatic.${automatic}`)],
    [t('inbound.route'), <a href={href('inbound/routes', { route: routeId })}>{route}</a>],
    [t('inbox.envelopeSender'), mail.sender],
    [t('inbox.remoteAddress'), mail.remoteAddress],
    [t('media.size'), size(mail.size)],
  ];
  return (
    <div class="card">
      <div class="card-body">
        <FactList facts={facts} />
      </div>
    </div>
  );
}

type View = 'text' | 'reply' | 'preview' | 'html' | 'headers';

/** The text first: everyone can read it without a risk. */
function Content({ of: mail }: { of: Mail }) {
  const { t } = useTexts();
  const [view, setView] = useState<View>('text');
  const hasReply = mail.replyText !== '' && mail.replyText.trim() !== mail.text.trim();
  const tabs: readonly { name: View; text: string }[] = [
    { name: 'text', text: t('inbound.text') },
    ...(hasReply ? [{ name: 'reply' as const, text: t('inbound.reply') }] : []),
    ...(mail.html === null
      ? []
      : [
          { name: 'preview' as const, text: t('messages.content.preview') },
          { name: 'html' as const, text: t('messages.content.html') },
        ]),
    { name: 'headers', text: t('messages.content.headers') },
  ];
  return (
    <div class="card">
      <section class="inbound-content" aria-label={t('messages.content')}>
        <TabList label={t('messages.content')} tabs={tabs} chosen={view} onChoose={setView}>
          <Part of={mail} view={view} />
        </TabList>
      </section>
    </div>
  );
}

function Part({ of: mail, view }: { of: Mail; view: View }) {
  const { t } = useTexts();
  if (view === 'headers')
    return (
      <dl class="facts">
        {mail.headers.map(({ name, value }, index) => (
          <div key={`${index} ${name}`}>
            <dt>{name}</dt>
            <dd class="value">{value}</dd>
          </div>
        ))}
      </dl>
    );
  if (view === 'preview' || view === 'html')
    return (
      <>
        {mail.htmlCut && <Notice title={t('inbound.htmlCut')} />}
        {view === 'html' ? (
          <pre tabIndex={0}>{mail.html}</pre>
        ) : (
          <>
            <StoredFrame title={t('messages.content')} html={mail.html ?? ''} />
            <p class="small">{t('inbound.preview.hint')}</p>
          </>
        )}
      </>
    );
  return (
    <>
      {mail.textCut && <Notice title={t('inbound.textCut')} />}
      <pre class="prose" tabIndex={0}>
        {view === 'reply' ? mail.replyText : mail.text || t('inbox.noText')}
      </pre>
    </>
  );
}

interface AttachmentsProps {
  of: readonly Attachment[];
  onSave: (n: number, fileName: string) => void;
}

function Attachments({ of: attachments, onSave }: AttachmentsProps) {
  const { t, size } = useTexts();
  return (
    <Card title={t('messages.content.attachments')}>
      <Table
        label={t('messages.content.attachments')}
        isList
        heads={[
          t('people.name'),
          t('inbound.type'),
          { text: t('media.size'), end: true },
          { text: t('inbound.save'), unseen: true },
        ]}
      >
        {attachments.map(({ name, type, size: bytes, isInline }, n) => {
          const file = name || `attachment-${n}`;
          return (
            <tr key={`${n} ${name}`}>
              <th scope="row">{file}</th>
              <td class="second">
                {type}
                {isInline && <span class="small">{t('inbound.inline')}</span>}
              </td>
              <td class="when">{size(bytes)}</td>
              <td class="menu">
                <button
                  class="button ghost icon-only"
                  type="button"
                  aria-label={t('inbound.save.of', { file })}
                  title={t('inbound.save.of', { file })}
                  onClick={() => onSave(n, file)}
                >
                  <Icon name="download" />
                </button>
              </td>
            </tr>
          );
        })}
      </Table>
      <div class="card-body">
        <p class="small">{t('inbound.attachments.hint')}</p>
      </div>
    </Card>
  );
}
