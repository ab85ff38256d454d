import { useState } from 'preact/hooks';
import { operate } from '../../api.ts';
import { useOperation } from '../../data.ts';
import { addressOf, type DataOf } from '../../operations.ts';
import { DeletionMenu } from '../../parts/deletion-menu.tsx';
import { Preview, type RenderedMail } from '../../parts/preview/preview.tsx';
import { Stepper } from '../../parts/stepper.tsx';
import { TestMessage } from '../../parts/test-message.tsx';
import { Card, Outcome, Page, useAction } from '../../parts.tsx';
import { useNavigation, useUnsavedWarning } from '../../routing.ts';
import { useMember } from '../../session.ts';
import { useTexts } from '../../texts.ts';
import { AudienceCard, type AudienceChoices, AudienceFields, hasAudience, useAudience } from './audience.tsx';
import { CampaignStatus } from './campaign-status.tsx';
import { Checks } from './checks.tsx';
import { ContentStep, verifiedDomains } from './content-step.tsx';
import { CAMPAIGN, type CampaignResource, type Choices } from './draft-saver.ts';
import { InboxLine, Start } from './review.tsx';
import { SaveProblem, SaveStatus } from './save-status.tsx';
import { parseSender, rememberedSender, senderAddress } from './sender.ts';
import { useDraft } from './use-draft.ts';
import { VariantSummary, VariantTabs } from './variant-summary.tsx';
import { contentOf, variantNames } from './variants.ts';
import './composer.css';

type Domain = DataOf<'/web-setup/domains'>['domains'][number];

const STEPS = ['audience', 'content', 'review'] as const;
type Step = (typeof STEPS)[number];

/** The first step of a new campaign: it exists once it has a name. */
export function NewCampaign() {
  const { t } = useTexts();
  const { href, go } = useNavigation();
  const { accountId, may } = useMember();
  const { outcome, run } = useAction();
  const [name, setName] = useState('');
  const [choices, setChoices] = useState<AudienceChoices>({});
  const audience = useAudience(choices);
  const isChosen = Object.values(choices).some((value) => value !== undefined);
  useUnsavedWarning(name !== '' || isChosen, t('campaigns.unsaved.new'));
  const create = () =>
    run(async () => {
      const { campaign } = await operate('post', '/web-setup/campaigns', {
        account: accountId,
        body: { name, prepared: isChosen ? choices : undefined },
      });
      const page = `campaigns/${encodeURIComponent(campaign.campaignId)}`;
      go(href(page, { step: 'content' }), { replace: true, discard: true });
      return '';
    });
  return (
    <Page title={t('campaigns.new')} question={t('campaigns.new.question')}>
      <Steps address={() => undefined} current="audience" done={[]} />
      <form
        class="composer"
        aria-label={t('campaigns.new')}
        onSubmit={(event) => {
          event.preventDefault();
          void create();
        }}
      >
        <div>
          <Card title={t('campaigns.step.audience')}>
            <div class="card-body">
              <NameField name={name} onChange={setName} />
              <AudienceFields
                choices={choices}
                onChange={(changed) => setChoices((last) => ({ ...last, ...changed }))}
              />
            </div>
          </Card>
          <div class="actions">
            <button
              type="submit"
              class="button primary"
              disabled={outcome?.running === true || !may('createCampaign')}
            >
              {t('campaigns.next.content')}
            </button>
          </div>
          <Outcome of={outcome} />
        </div>
        <AudienceCard choices={choices} audience={audience} />
      </form>
    </Page>
  );
}

interface ComposerProps {
  campaign: CampaignResource;
  reload: () => void;
}

/** A draft in three steps, each with an address (`step`). It saves itself. */
export function Composer({ campaign, reload }: ComposerProps) {
  const { t } = useTexts();
  const { location, href, go } = useNavigation();
  const { accountId, may } = useMember();
  const draft = useDraft(campaign);
  const domains = useOperation('/web-setup/domains');
  const { name, prepared } = draft.fields;
  const from = prepared.from ?? usualSender(domains.value?.domains ?? [], accountId);
  const choices: Choices = { ...prepared, from };
  const { templateId } = choices;
  const audience = useAudience(choices);
  const template = useOperation(templateId === undefined ? null : '/web-setup/templates/{templateId}', {
    templateId: templateId ?? '',
  });
  const names = variantNames(choices);
  const variant = Math.max(names.indexOf(location.query['variant'] ?? ''), 0);
  const content = contentOf(choices, variant);
  const isOther = content.templateId !== templateId;
  const other = useOperation(isOther ? '/web-setup/templates/{templateId}' : null, {
    templateId: content.templateId ?? '',
  });
  const [rendered, setRendered] = useState<RenderedMail | null>(null);
  const { outcome, run } = useAction();
  const done: Step[] = [
    ...(hasAudience(choices) ? (['audience'] as const) : []),
    ...(templateId === undefined || from === undefined ? [] : (['content'] as const)),
  ];
  const step =
    STEPS.find((each) => each === location.query['step']) ??
    STEPS.find((each) => !done.includes(each)) ??
    'review';
  const page = `campaigns/${encodeURIComponent(campaign.campaignId)}`;
  // What the preview shows remains.
  const { view, dark, contact } = location.query;
  const shown = variant === 0 ? undefined : names[variant];
  const address = (to: Step, name = shown) => href(page, { step: to, view, dark, contact, variant: name });
  const readOnly = !may('patchCampaign');
  const choose = (changed: Partial<Choices>) =>
    // The usual sender is stored with the first choice that this person makes.
    draft.choose(prepared.from === undefined && from !== undefined ? { from, ...changed } : changed);
  const chosen = (isOther ? other : template).value?.template;
  const remove = () =>
    run(async () => {
      // A save under way would otherwise find nothing, and report it as a loss.
      await draft.flush();
      await operate('delete', CAMPAIGN, {
        account: accountId,
        parameters: { campaignId: campaign.campaignId },
      });
      draft.adopt(campaign);
      go(href('campaigns'), { discard: true });
      return '';
    });
  return (
    <Page
      title={name || campaign.name}
      chip={<CampaignStatus name={campaign.status} />}
      curl={addressOf(CAMPAIGN, { campaignId: campaign.campaignId })}
      actions={
        <>
          <SaveStatus draft={draft} />
          {may('deleteCampaign') && (
            <DeletionMenu
              name={name}
              label={t('campaigns.delete')}
              question={t('campaigns.delete.confirm', { name })}
              remove={remove}
            />
          )}
        </>
      }
    >
      <Steps address={address} current={step} done={done} />
      <SaveProblem draft={draft} reload={reload} />
      {outcome?.failed === true && <Outcome of={outcome} />}
      <div class="composer">
        <div>
          <fieldset class="plain" disabled={readOnly}>
            {step === 'audience' && (
              <Card title={t('campaigns.step.audience')}>
                <div class="card-body">
                  <NameField isStored name={name} onChange={draft.rename} />
                  <AudienceFields choices={choices} onChange={choose} />
                </div>
              </Card>
            )}
            {step === 'content' && (
              <ContentStep
                choices={choices}
                template={template}
                domains={domains.value?.domains ?? []}
                onChange={choose}
              />
            )}
          </fieldset>
          {readOnly && <p class="small">{t('messages.notAllowed')}</p>}
          {step === 'review' && (
            <>
              <Checks
                choices={choices}
                variant={variant}
                rendered={rendered}
                changedAt={chosen?.updatedAt}
                domains={domains.value?.domains ?? []}
                audience={audience}
                step={address}
              />
              {names.length > 0 && <VariantSummary choices={choices} />}
              <Start
                campaign={campaign}
                draft={draft}
                choices={choices}
                audience={audience}
                rendered={rendered}
                reload={reload}
              />
            </>
          )}
          {step !== 'audience' &&
            content.templateId !== undefined &&
            from !== undefined &&
            may('sendMarketing') && (
              <Card title={t('campaigns.test')}>
                <div class="card-body">
                  <TestMessage
                    isBare
                    templateId={content.templateId}
                    stream="mk"
                    from={from}
                    subject={content.subject}
                    variables={rendered?.variables ?? {}}
                  />
                </div>
              </Card>
            )}
          {step !== 'review' && (
            <div class="actions">
              {/* After what was chosen, as a submit button is. */}
              <a class="button primary" href={address(step === 'audience' ? 'content' : 'review')}>
                {t(step === 'audience' ? 'campaigns.next.content' : 'campaigns.next.review')}
              </a>
            </div>
          )}
        </div>
        {step === 'audience' ? (
          <AudienceCard choices={choices} audience={audience} />
        ) : chosen === undefined ? (
          <Card title={t('preview.title')}>
            <p class="card-body">{t('campaigns.preview.none')}</p>
          </Card>
        ) : (
          <div>
            {names.length > 0 && (
              <VariantTabs
                choices={choices}
                current={names[variant] ?? ''}
                address={(name) => address(step, name)}
              />
            )}
            <InboxLine from={from ?? ''} rendered={rendered} />
            <div class="card">
              <Preview
                page={page}
                keep={shown === undefined ? { step } : { step, variant: shown }}
                hasOwnFaults
                content={{
                  subject: content.subject ?? chosen.subject ?? '',
                  html: chosen.html,
                  text: chosen.text ?? null,
                  syntax: chosen.syntax,
                  from: senderAddress(from ?? ''),
                }}
                onRendered={setRendered}
              />
            </div>
          </div>
        )}
      </div>
    </Page>
  );
}

interface NameFieldProps {
  name: string;
  /** Whether the campaign exists. */
  isStored?: boolean;
  onChange: (name: string) => void;
}

function NameField({ name, isStored = false, onChange }: NameFieldProps) {
  const { t } = useTexts();
  return (
    <label class="field">
      {t('people.name')}
      <input
        class="input"
        required
        maxLength={200}
        autocomplete="off"
        value={name}
        aria-invalid={isStored && name.trim() === '' ? true : undefined}
        onInput={({ currentTarget: { value } }) => onChange(value)}
      />
    </label>
  );
}

interface StepsProps {
  /** Undefined: the step cannot be opened. */
  address: (step: Step) => string | undefined;
  current: Step;
  done: readonly Step[];
}

function Steps({ address, current, done }: StepsProps) {
  const { t } = useTexts();
  return (
    <Stepper
      label={t('campaigns.steps')}
      steps={STEPS.map((step) => ({
        name: t(`campaigns.step.${step}`),
        isDone: done.includes(step),
        address: address(step),
      }))}
      current={STEPS.indexOf(current)}
    />
  );
}

/** The sender that this person used last, or one of the first verified domain. */
function usualSender(domains: readonly Domain[], accountId: string): string | undefined {
  const verified = verifiedDomains(domains);
  const remembered = rememberedSender(accountId);
  if (remembered !== null && verified.includes(parseSender(remembered).domain)) return remembered;
  const [first] = verified;
  return first === undefined ? undefined : `news@${first}`;
}
