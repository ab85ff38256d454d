import { useState } from 'preact/hooks';
import { operate } from '../../api.ts';
import { useOperation } from '../../data.ts';
import type { DataOf } from '../../operations.ts';
import { Button } from '../../parts/button.tsx';
import { FactList } from '../../parts/fact-list.tsx';
import { Field } from '../../parts/field.tsx';
import { useRested } from '../../parts/rested.ts';
import { toast } from '../../parts/toast.tsx';
import { Card, Chip, Loaded, Outcome, useAction } from '../../parts.tsx';
import { useMember } from '../../session.ts';
import { useTexts } from '../../texts.ts';

const PATH = '/web-setup/contacts/sunset';

type Sunset = DataOf<typeof PATH>['sunset'];

/** The fields of the rule with their limits. */
const NUMBERS = { months: [6, 36], messages: [1, 1000], noticeDays: [0, 90] } as const;
type NumberField = keyof typeof NUMBERS;
const FIELDS = ['months', 'messages', 'noticeDays'] as const satisfies readonly NumberField[];

function isValid(name: NumberField, value: number): boolean {
  const [min, max] = NUMBERS[name];
  return Number.isInteger(value) && value >= min && value <= max;
}

/** The sunset rule: whom it would find, before it is turned on, and what it has done. */
export function SunsetCard() {
  const { t } = useTexts();
  const data = useOperation(PATH);
  const isOn = data.value?.sunset.enabled === true;
  return (
    <Card
      title={t('contacts.sunset')}
      action={
        <Chip kind={isOn ? 'ok' : 'idle'}>{t(isOn ? 'contacts.sunset.on' : 'contacts.sunset.off')}</Chip>
      }
    >
      <Loaded data={data}>{({ sunset }) => <Rule sunset={sunset} onSaved={data.reload} />}</Loaded>
    </Card>
  );
}

interface RuleProps {
  sunset: Sunset;
  onSaved: () => void;
}

function Rule({ sunset, onSaved }: RuleProps) {
  const { t, number } = useTexts();
  const { accountId, may } = useMember();
  const { outcome, run } = useAction();
  const { enabled, months, messages, noticeDays } = sunset;
  const [rule, setRule] = useState({ months, messages, noticeDays });
  const [counted, setCounted] = useState({ months, messages });
  // Whom the values of the form would touch; the rule stays as it is.
  const matching = useOperation(PATH, useRested(counted)).value?.sunset.matching;
  const change = (name: NumberField, value: number) => {
    setRule((last) => ({ ...last, [name]: value }));
    if (name !== 'noticeDays' && isValid(name, value)) setCounted((last) => ({ ...last, [name]: value }));
  };
  const save = (isOn: boolean) =>
    run(async () => {
      await operate('put', PATH, { account: accountId, body: { ...rule, enabled: isOn } });
      onSaved();
      toast(t(isOn ? 'contacts.sunset.isOn' : 'contacts.sunset.isOff'));
      return '';
    });
  const mayChange = may('putSunset');
  return (
    <form
      class="card-body"
      aria-label={t('contacts.sunset')}
      onSubmit={(event) => {
        event.preventDefault();
        void save(true);
      }}
    >
      <p class="small">{t('contacts.sunset.about')}</p>
      <fieldset class="fields" disabled={!mayChange}>
        {FIELDS.map((name) => (
          <Field label={t(`contacts.sunset.${name}`)} key={name}>
            {(control) => (
              <input
                {...control}
                class="input"
                type="number"
                required
                min={NUMBERS[name][0]}
                max={NUMBERS[name][1]}
                value={rule[name]}
                onInput={({ currentTarget: { valueAsNumber } }) => change(name, valueAsNumber)}
              />
            )}
          </Field>
        ))}
      </fieldset>
      <FactList
        facts={[
          [t('contacts.sunset.matching'), matching === undefined ? '…' : number(matching)],
          [t('contacts.sunset.perDay'), number(sunset.perDay)],
          [t('contacts.sunset.ended'), number(sunset.ended)],
        ]}
      />
      {outcome?.failed === true && <Outcome of={outcome} />}
      {mayChange && (
        <p class="actions">
          <Button
            type="submit"
            label={t(enabled ? 'contacts.sunset.save' : 'contacts.sunset.turnOn')}
            isBusy={outcome?.running === true}
            isDisabled={!FIELDS.every((name) => isValid(name, rule[name]))}
          />
          {enabled && (
            <Button
              label={t('contacts.sunset.turnOff')}
              isBusy={outcome?.running === true}
              onClick={() => void save(false)}
            />
          )}
        </p>
      )}
    </form>
  );
}
