import { useState } from 'preact/hooks';
import { operate } from '../../api.ts';
import { useOperation } from '../../data.ts';
import { Button } from '../../parts/button.tsx';
import { useChangedForm } from '../../parts/changed-form.ts';
import { Icon } from '../../parts/icon/icon.tsx';
import { Card, Notice, Outcome, Page, useAction } from '../../parts.tsx';
import { useNavigation } from '../../routing.ts';
import { useMember } from '../../session.ts';
import { useTexts } from '../../texts.ts';
import { ConditionField, GroupField } from './condition-field.tsx';
import {
  type Filter,
  kindOfStep,
  kindOfTrigger,
  SEQUENCE,
  SEQUENCES,
  type Sequence,
  STEP_ICONS,
  STEP_KINDS,
  type Step,
  type StepKind,
  TRIGGER_KINDS,
  type Trigger,
  type TriggerKind,
  waitParts,
} from './model.ts';
import { useWords, type Words } from './words.ts';
import './sequences.css';

/** A step with a key that stays when it moves. */
interface EditedStep {
  key: number;
  step: Step;
}

interface EditorProps {
  /** Null: a new one. */
  sequence: Sequence | null;
  onSaved?: () => void;
}

/** The form of a sequence: trigger, steps in their order, and the goal. */
export function SequenceEditor({ sequence, onSaved }: EditorProps) {
  const { t } = useTexts();
  const { href, go } = useNavigation();
  const { accountId } = useMember();
  const { outcome, run } = useAction();
  const words = useWords();
  const from = useSender();
  const [name, setName] = useState(sequence?.name ?? '');
  const [trigger, setTrigger] = useState<Trigger>(sequence?.trigger ?? { joined: '' });
  const [goal, setGoal] = useState<Filter | null>(sequence?.goal ?? null);
  const [steps, setSteps] = useState<EditedStep[]>(() =>
    (sequence?.steps ?? []).map((step, key) => ({ key, step })),
  );
  const [nextKey, setNextKey] = useState(steps.length);
  const { changing, saved } = useChangedForm(t('sequences.unsaved'));
  const change = changing(setSteps);
  const add = (kind: StepKind) => {
    setNextKey(nextKey + 1);
    change([...steps, { key: nextKey, step: newStep(kind, from, words) }]);
  };
  const move = (at: number, by: -1 | 1) => {
    const moved = [...steps];
    const [one] = moved.splice(at, 1);
    if (one !== undefined) moved.splice(at + by, 0, one);
    change(moved);
  };
  const save = () =>
    run(async () => {
      const body = { name, trigger, steps: steps.map(({ step }) => step), goal };
      const { sequence: stored } =
        sequence === null
          ? await operate('post', SEQUENCES, { account: accountId, body })
          : await operate('patch', SEQUENCE, {
              account: accountId,
              parameters: { sequenceId: sequence.sequenceId },
              body,
            });
      saved();
      onSaved?.();
      go(href(`sequences/${encodeURIComponent(stored.sequenceId)}`), { discard: true });
      return '';
    });
  const back =
    sequence === null ? href('sequences') : href(`sequences/${encodeURIComponent(sequence.sequenceId)}`);
  return (
    <Page title={sequence?.name ?? t('sequences.new')}>
      {sequence !== null && sequence.status !== 'draft' && (
        <Notice title={t('sequences.version')}>
          <p>{t('sequences.version.hint')}</p>
        </Notice>
      )}
      <form
        class="sequence-form"
        aria-label={t('sequences.edit')}
        onSubmit={(event) => {
          event.preventDefault();
          void save();
        }}
      >
        <Card title={t('sequences.trigger')}>
          <div class="card-body">
            <label class="field">
              {t('people.name')}
              <input
                class="input"
                required
                maxLength={200}
                autocomplete="off"
                value={name}
                onInput={({ currentTarget: { value } }) => changing(setName)(value)}
              />
            </label>
            <TriggerFields trigger={trigger} words={words} onChange={changing(setTrigger)} />
          </div>
        </Card>
        <Card title={t('sequences.steps')}>
          {steps.length === 0 ? (
            <p class="card-body">{t('sequences.steps.none')}</p>
          ) : (
            <ol class="sequence-steps">
              {steps.map(({ key, step }, at) => (
                <li class="sequence-step edited" key={key}>
                  <span class="sequence-icon">
                    <Icon name={STEP_ICONS[kindOfStep(step)]} />
                  </span>
                  <div class="sequence-text">
                    <strong>
                      {at + 1}. {t(`sequences.step.${kindOfStep(step)}`)}
                    </strong>
                    <StepFields
                      step={step}
                      words={words}
                      onChange={(next) =>
                        change(steps.map((each) => (each.key === key ? { key, step: next } : each)))
                      }
                    />
                  </div>
                  <div class="sequence-order">
                    <OrderButton
                      icon="arrow-up"
                      label={t('sequences.up', { step: at + 1 })}
                      isOff={at === 0}
                      onClick={() => move(at, -1)}
                    />
                    <OrderButton
                      icon="arrow-down"
                      label={t('sequences.down', { step: at + 1 })}
                      isOff={at === steps.length - 1}
                      onClick={() => move(at, 1)}
                    />
                    <OrderButton
                      icon="x"
                      label={t('sequences.removeStep', { step: at + 1 })}
                      onClick={() => change(steps.filter((each) => each.key !== key))}
                    />
                  </div>
                </li>
              ))}
            </ol>
          )}
          <div class="actions sequence-add">
            {STEP_KINDS.map((kind) => (
              <button class="button small" type="button" key={kind} onClick={() => add(kind)}>
                <Icon name="plus" />
                {t(`sequences.step.${kind}`)}
              </button>
            ))}
          </div>
        </Card>
        <Card title={t('sequences.goal')}>
          <div class="card-body">
            <label class="check">
              <input
                class="tick"
                type="checkbox"
                checked={goal !== null}
                onChange={({ currentTarget: { checked } }) =>
                  changing(setGoal)(checked ? { clicked: { withinDays: 7 } } : null)
                }
              />
              {t('sequences.goal.has')}
            </label>
            {goal !== null && (
              <ConditionField
                filter={goal}
                words={words}
                label={t('sequences.goal.when')}
                onChange={changing(setGoal)}
              />
            )}
          </div>
        </Card>
        <div class="actions">
          <Button
            type="submit"
            kind="primary"
            label={t('sequences.save')}
            isBusy={outcome?.running === true}
          />
          <a class="button" href={back}>
            {t('app.cancel')}
          </a>
        </div>
        <Outcome of={outcome} />
      </form>
    </Page>
  );
}

interface OrderButtonProps {
  icon: 'arrow-up' | 'arrow-down' | 'x';
  label: string;
  isOff?: boolean;
  onClick: () => void;
}

function OrderButton({ icon, label, isOff = false, onClick }: OrderButtonProps) {
  return (
    <button
      class="button icon-only ghost"
      type="button"
      aria-label={label}
      title={label}
      disabled={isOff}
      onClick={onClick}
    >
      <Icon name={icon} />
    </button>
  );
}

interface TriggerFieldsProps {
  trigger: Trigger;
  words: Words;
  onChange: (trigger: Trigger) => void;
}

function TriggerFields({ trigger, words, onChange }: TriggerFieldsProps) {
  const { t } = useTexts();
  const kind = kindOfTrigger(trigger);
  const value = trigger[kind] ?? '';
  const isGroup = kind === 'joined' || kind === 'confirmed';
  const text = (label: string, hint: string, max: number) => (
    <label class="field">
      {label}
      <input
        class="input"
        required
        maxLength={max}
        autocomplete="off"
        spellcheck={false}
        value={value}
        onInput={({ currentTarget }) => onChange({ ...trigger, [kind]: currentTarget.value })}
      />
      <span class="hint">{hint}</span>
    </label>
  );
  return (
    <>
      <label class="field">
        {t('sequences.starts')}
        <select
          class="select"
          value={kind}
          // One of the options below.
          onChange={({ currentTarget }) => onChange({ [currentTarget.value as TriggerKind]: '' })}
        >
          {TRIGGER_KINDS.map((each) => (
            <option key={each} value={each}>
              {t(`sequences.trigger.${each}`)}
            </option>
          ))}
        </select>
      </label>
      {isGroup && (
        <GroupField groupId={value} words={words} onChange={(group) => onChange({ [kind]: group })} />
      )}
      {kind === 'event' && text(t('sequences.event'), t('sequences.event.hint'), 100)}
      {(kind === 'dateField' || kind === 'fieldSet') &&
        text(
          t('sequences.customField'),
          t(kind === 'dateField' ? 'sequences.dateField.hint' : 'sequences.fieldSet.hint'),
          100,
        )}
      {kind === 'dateField' && (
        <label class="field">
          {t('sequences.offsetDays')}
          <input
            class="input short"
            type="number"
            required
            min={-365}
            max={365}
            value={trigger.offsetDays ?? 0}
            onInput={({ currentTarget }) =>
              onChange({ ...trigger, offsetDays: currentTarget.valueAsNumber || 0 })
            }
          />
          <span class="hint">{t('sequences.offsetDays.hint')}</span>
        </label>
      )}
    </>
  );
}

function StepFields({ step, words, onChange }: { step: Step; words: Words; onChange: (step: Step) => void }) {
  const { t } = useTexts();
  const { wait, send, when, otherwise = 'end' } = step;
  if (wait !== undefined) return <WaitFields wait={wait} onChange={(next) => onChange({ wait: next })} />;
  if (send !== undefined)
    return <SendFields send={send} words={words} onChange={(next) => onChange({ send: next })} />;
  if (when === undefined) return <p class="small">{t('sequences.step.end.hint')}</p>;
  return (
    <>
      <ConditionField
        filter={when}
        words={words}
        label={t('sequences.continueIf')}
        onChange={(filter) => onChange({ when: filter, otherwise })}
      />
      <label class="field">
        {t('sequences.otherwise')}
        <select
          class="select"
          value={otherwise}
          onChange={({ currentTarget: { value } }) =>
            onChange({ when, otherwise: value === 'skip' ? 'skip' : 'end' })
          }
        >
          <option value="end">{t('sequences.otherwise.end')}</option>
          <option value="skip">{t('sequences.otherwise.skip')}</option>
        </select>
      </label>
    </>
  );
}

function WaitFields({ wait, onChange }: { wait: string; onChange: (wait: string) => void }) {
  const { t } = useTexts();
  const { count, unit } = waitParts(wait);
  return (
    <div class="sequence-fields">
      <label class="field">
        {t('sequences.duration')}
        <input
          class="input"
          type="number"
          required
          min={1}
          max={unit === 'd' ? 365 : unit === 'h' ? 8760 : 525_600}
          value={count}
          onInput={({ currentTarget }) => onChange(`${currentTarget.valueAsNumber || 1}${unit}`)}
        />
      </label>
      <label class="field">
        {t('sequences.unit')}
        <select
          class="select"
          value={unit}
          onChange={({ currentTarget: { value } }) => onChange(`${count}${value}`)}
        >
          <option value="m">{t('sequences.unit.m')}</option>
          <option value="h">{t('sequences.unit.h')}</option>
          <option value="d">{t('sequences.unit.d')}</option>
        </select>
      </label>
    </div>
  );
}

type Send = NonNullable<Step['send']>;

function SendFields({ send, words, onChange }: { send: Send; words: Words; onChange: (send: Send) => void }) {
  const { t } = useTexts();
  const { templateId, from, subject } = send;
  const chosen = words.templates.find((each) => each.templateId === templateId);
  const isOwn = templateId === undefined;
  const withSubject = (text: string) => {
    const { subject: _, ...rest } = send;
    onChange(text === '' ? rest : { ...rest, subject: text });
  };
  return (
    <div class="sequence-fields">
      {isOwn ? (
        <p class="small wide">{t('sequences.ownContent')}</p>
      ) : (
        <label class="field">
          {t('campaigns.template')}
          <select
            class="select"
            required
            value={templateId}
            onChange={({ currentTarget: { value } }) => onChange({ ...send, templateId: value })}
          >
            <option value="">{t('campaigns.noChoice')}</option>
            {templateId !== '' && chosen === undefined && <option value={templateId}>{templateId}</option>}
            {words.templates.map((each) => (
              <option key={each.templateId} value={each.templateId}>
                {each.name}
              </option>
            ))}
          </select>
        </label>
      )}
      <label class="field">
        {t('messages.sender')}
        <input
          class="input"
          required
          maxLength={500}
          autocomplete="off"
          spellcheck={false}
          value={from}
          onInput={({ currentTarget: { value } }) => onChange({ ...send, from: value })}
        />
      </label>
      <label class="field wide">
        {t('messages.subject')}
        <input
          class="input"
          required={isOwn}
          maxLength={998}
          autocomplete="off"
          placeholder={chosen?.subject ?? ''}
          value={subject ?? ''}
          onInput={({ currentTarget: { value } }) => withSubject(value)}
        />
      </label>
    </div>
  );
}

function newStep(kind: StepKind, from: string, words: Words): Step {
  switch (kind) {
    case 'send': {
      const [only, ...others] = words.templates;
      return { send: { from, templateId: only !== undefined && others.length === 0 ? only.templateId : '' } };
    }
    case 'wait':
      return { wait: '1d' };
    case 'when':
      return { when: { opened: { withinDays: 7 } }, otherwise: 'end' };
    default:
      return { end: true };
  }
}

/** An address of the first verified domain for marketing mail. */
function useSender(): string {
  const domains = useOperation('/web-setup/domains').value?.domains ?? [];
  const verified = domains.find(({ status, useCase }) => useCase === 'mk' && status === 'SUCCESS');
  return verified === undefined ? '' : `news@${verified.domain}`;
}
