import { useState } from 'preact/hooks';
import type { DataOf } from '../../operations.ts';
import { Button } from '../../parts/button.tsx';
import { Outcome, Table, useAction } from '../../parts.tsx';
import { useTexts } from '../../texts.ts';
import './limits.css';

type Limits = DataOf<'/web-setup/accounts/{accountId}'>['limits'];
type LimitName = keyof Limits;
type Change = number | null | 'default';

const NAMES = [
  'messagesPerHour',
  'messagesPerDay',
  'contacts',
  'domains',
  'webhooks',
  'templates',
  'storedBytes',
  'campaigns',
  'subscriptionGroups',
  'suppressions',
  'concurrentRequests',
] as const satisfies LimitName[];
const MODES = ['configured', 'unlimited', 'own'] as const;

/** What is chosen for a limit; `value` is the text of the field, used by `own`. */
interface Choice {
  mode: (typeof MODES)[number];
  value: string;
}

interface LimitFormProps {
  limits: Limits;
  /** Gets the limits that differ. */
  save: (changes: Partial<Record<LimitName, Change>>) => Promise<void>;
}

/** The limits of an account with their use; each is as configured, unlimited, or a number. */
export function LimitForm({ limits, save }: LimitFormProps) {
  const { t } = useTexts();
  const { outcome, run } = useAction();
  const [choices, setChoices] = useState<Partial<Record<LimitName, Choice>>>({});
  const choiceOf = (name: LimitName) => choices[name] ?? currentChoice(limits[name]);
  const submit = () =>
    run(async () => {
      const changes: Partial<Record<LimitName, Change>> = {};
      for (const name of NAMES) {
        const change = changeOf(choiceOf(name));
        if (change !== changeOf(currentChoice(limits[name]))) changes[name] = change;
      }
      if (Object.keys(changes).length === 0) return t('accounts.unchanged');
      await save(changes);
      setChoices({});
      return t('accounts.saved');
    });
  return (
    <form
      class="limits"
      aria-label={t('accounts.limits')}
      onSubmit={(event) => {
        event.preventDefault();
        void submit();
      }}
    >
      <Table
        label={t('accounts.limits')}
        isList
        heads={[
          t('accounts.limit'),
          { text: t('accounts.used'), end: true },
          { text: t('accounts.inForce'), end: true },
          t('accounts.rule'),
        ]}
      >
        {NAMES.map((name) => (
          <LimitRow
            key={name}
            name={name}
            reading={limits[name]}
            choice={choiceOf(name)}
            choose={(choice) => setChoices((last) => ({ ...last, [name]: choice }))}
          />
        ))}
      </Table>
      <div class="card-body">
        <Button type="submit" kind="primary" label={t('accounts.save')} isBusy={outcome?.running === true} />
        <Outcome of={outcome} />
      </div>
    </form>
  );
}

interface LimitRowProps {
  name: LimitName;
  reading: Limits[LimitName];
  choice: Choice;
  choose: (choice: Choice) => void;
}

function LimitRow({ name, reading: { value, used }, choice, choose }: LimitRowProps) {
  const { t, number, size } = useTexts();
  const shown = name === 'storedBytes' ? size : number;
  const limit = t(`accounts.limit.${name}`);
  return (
    <tr>
      <th scope="row">{limit}</th>
      <td class="aside labelled">{used === null ? t('accounts.notCounted') : shown(used)}</td>
      <td class="when labelled">{value === null ? t('accounts.unlimited') : shown(value)}</td>
      <td class="second">
        <div class="actions">
          <select
            class="select"
            aria-label={t('accounts.mode', { limit })}
            value={choice.mode}
            onChange={({ currentTarget }) =>
              choose({ ...choice, mode: MODES.find((mode) => mode === currentTarget.value) ?? 'configured' })
            }
          >
            {MODES.map((mode) => (
              <option value={mode} key={mode}>
                {t(`accounts.mode.${mode}`)}
              </option>
            ))}
          </select>
          {choice.mode === 'own' && (
            <input
              class="input"
              type="number"
              required
              min={name === 'concurrentRequests' ? 1 : 0}
              max={999_999_999_999_999}
              step={1}
              aria-label={t('accounts.value', { limit })}
              value={choice.value}
              onInput={({ currentTarget }) => choose({ ...choice, value: currentTarget.value })}
            />
          )}
        </div>
      </td>
    </tr>
  );
}

function currentChoice({ value, isDefault }: Limits[LimitName]): Choice {
  const mode = isDefault ? 'configured' : value === null ? 'unlimited' : 'own';
  return { mode, value: value === null ? '' : String(value) };
}

function changeOf({ mode, value }: Choice): Change {
  if (mode === 'configured') return 'default';
  return mode === 'unlimited' ? null : Number(value);
}
