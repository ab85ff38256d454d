import type { AudienceResponse } from '../../../http/console/figure-routes.ts';
import { operate } from '../../api.ts';
import type { Data } from '../../data.ts';
import { FactList } from '../../parts/fact-list.tsx';
import { localTime } from '../../parts/local-time.ts';
import type { RenderedMail } from '../../parts/preview/preview.tsx';
import { toast } from '../../parts/toast.tsx';
import { Card, Confirmed, focusNextHeading, Notice, Outcome, useAction } from '../../parts.tsx';
import { useNavigation } from '../../routing.ts';
import { useMember } from '../../session.ts';
import { type Texts, useTexts } from '../../texts.ts';
import { audienceOf, hasAudience } from './audience.tsx';
import type { CampaignResource, Choices } from './draft-saver.ts';
import { parseSender, rememberSender } from './sender.ts';
import type { CampaignDraft } from './use-draft.ts';
import { testSentence } from './variant-summary.tsx';

/** Characters of the text that most inboxes show. */
const SHOWN_CHARACTERS = 60;

/** The message as a line of an inbox: sender, subject, and the beginning of the text; as wide and as dark as the preview. */
export function InboxLine({ from, rendered }: { from: string; rendered: RenderedMail | null }) {
  const { t } = useTexts();
  const { view, dark } = useNavigation().location.query;
  const { name, local, domain } = parseSender(from);
  const shown = name || `${local}@${domain}`;
  const preview = rendered?.preview;
  return (
    <section
      class={`inbox-line ${view === 'phone' ? 'phone' : ''} ${dark === undefined ? '' : 'dark'}`}
      aria-label={t('campaigns.inboxLine')}
    >
      <span class="inbox-initial" aria-hidden="true">
        {shown.slice(0, 1).toUpperCase()}
      </span>
      <span class="inbox-sender">{shown}</span>
      <strong>{preview === undefined ? '…' : preview.subject || t('campaigns.noSubject')}</strong>
      <span class="inbox-text">{preview?.previewText.slice(0, SHOWN_CHARACTERS)}</span>
    </section>
  );
}

interface StartProps {
  campaign: CampaignResource;
  draft: CampaignDraft;
  choices: Choices;
  audience: Data<AudienceResponse>;
  rendered: RenderedMail | null;
  reload: () => void;
}

/** When the campaign starts, and the button that sends it. */
export function Start(props: StartProps) {
  const { draft, choices } = props;
  const { t } = useTexts();
  const { may } = useMember();
  const { scheduledAt, perHour } = choices;
  return (
    <Card title={t('campaigns.start')}>
      <div class="card-body">
        <fieldset class="plain" disabled={!may('patchCampaign')}>
          <div class="segments" role="radiogroup" aria-label={t('campaigns.scheduledAt')}>
            {([false, true] as const).map((isLater) => (
              <label class="segment" key={String(isLater)}>
                <input
                  class="segment-input"
                  type="radio"
                  name="start"
                  checked={(scheduledAt !== undefined) === isLater}
                  onChange={() => draft.choose({ scheduledAt: isLater ? nextMorning() : undefined })}
                />
                {t(isLater ? 'campaigns.start.later' : 'campaigns.start.now')}
              </label>
            ))}
          </div>
          {scheduledAt !== undefined && (
            <label class="field">
              {t('campaigns.scheduledAt')}
              <input
                class="input"
                type="datetime-local"
                required
                value={localTime(Date.parse(scheduledAt))}
                // In UTC: the person who sends it may be in another time zone.
                onInput={({ currentTarget: { value } }) => {
                  if (value !== '') draft.choose({ scheduledAt: new Date(value).toISOString() });
                }}
              />
            </label>
          )}
          <details open={perHour !== undefined}>
            <summary>{t('campaigns.perHour')}</summary>
            <label class="field">
              {t('campaigns.perHour')}
              <input
                class="input"
                type="number"
                min={1}
                max={10_000_000}
                value={perHour ?? ''}
                onInput={({ currentTarget: { value } }) =>
                  draft.choose({ perHour: value === '' ? undefined : Number(value) })
                }
              />
              <span class="small">{t('campaigns.perHourHint')}</span>
            </label>
          </details>
        </fieldset>
        {may('sendCampaign') ? <SendButton {...props} /> : <Notice title={t('campaigns.maySend')} />}
      </div>
    </Card>
  );
}

function SendButton({ campaign, draft, choices, audience, rendered, reload }: StartProps) {
  const texts = useTexts();
  const { t, time, number } = texts;
  const { accountId } = useMember();
  const { outcome, run } = useAction();
  const { scheduledAt, from, perHour, subject, templateId, variants, test } = choices;
  const hasRecipients = hasAudience(choices) && audience.error?.status !== 404;
  if (!hasRecipients || templateId === undefined || from === undefined)
    return <p class="small">{t('campaigns.incomplete')}</p>;
  const { name } = draft.fields;
  const isLater = scheduledAt !== undefined;
  const send = () =>
    run(async () => {
      // What is sent is what is stored, and what this person sees.
      if (!(await draft.flush())) throw new Error(t('campaigns.save.first'));
      await operate('post', '/web-setup/campaigns/{campaignId}/send', {
        account: accountId,
        parameters: { campaignId: campaign.campaignId },
        body: {
          ...audienceOf(choices),
          templateId,
          from,
          subject,
          perHour,
          scheduledAt,
          variants,
          test,
          // What decides is counted.
          ...(test?.winner === 'opens' ? { enableOpenTracking: true } : {}),
          ...(test?.winner === 'clicks' ? { enableClickTracking: true } : {}),
        },
      });
      rememberSender(accountId, from);
      focusNextHeading();
      toast(t(isLater ? 'campaigns.scheduled' : 'campaigns.sending'));
      reload();
      return '';
    });
  const recipients =
    audience.value === null ? t('campaigns.uncounted') : recipientsText(audience.value, texts);
  return (
    <>
      <div class="actions">
        <Confirmed
          isPrimary
          label={t(isLater ? 'campaigns.schedule' : 'campaigns.send')}
          question={t('campaigns.send.once')}
          details={
            <FactList
              facts={[
                [t('campaigns.campaign'), name || campaign.campaignId],
                [t('campaigns.recipients'), recipients],
                // The variants have their own.
                [
                  t('messages.subject'),
                  test === undefined ? (rendered?.preview.subject ?? subject ?? '') : '',
                ],
                [t('campaigns.variants.card'), testSentence(choices, texts)],
                [t('messages.sender'), from],
                [t('campaigns.scheduledAt'), isLater ? time(scheduledAt) : t('campaigns.start.now')],
                [t('campaigns.perHour'), perHour === undefined ? '' : number(perHour)],
              ]}
            />
          }
          action={send}
        />
      </div>
      <Outcome of={outcome} />
    </>
  );
}

/** Who receives it, by names, and how many. */
function recipientsText(
  { groups, segment, excluded, eligible, members }: AudienceResponse,
  { t, number }: Texts,
): string {
  const chosen = groups.length === 0 ? t('campaigns.summary.allGroups') : groups.join(', ');
  const selected = segment === null ? chosen : t('campaigns.summary.segment', { group: chosen, segment });
  const group =
    excluded.length === 0
      ? selected
      : t('campaigns.summary.without', { group: selected, names: excluded.join(', ') });
  return t('campaigns.summary.recipients', { group, eligible: number(eligible), members: number(members) });
}

/** Nine o'clock of the next day, ISO 8601. */
function nextMorning(): string {
  const at = new Date();
  at.setDate(at.getDate() + 1);
  at.setHours(9, 0, 0, 0);
  return at.toISOString();
}
