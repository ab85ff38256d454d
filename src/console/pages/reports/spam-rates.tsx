import { useMemo, useRef, useState } from 'preact/hooks';
import { operate, uploadFile } from '../../api.ts';
import type { DataOf } from '../../operations.ts';
import { Button } from '../../parts/button.tsx';
import { Chart } from '../../parts/chart/chart.tsx';
import { Drawer } from '../../parts/drawer.tsx';
import { Field, FileField } from '../../parts/field.tsx';
import { fieldText } from '../../parts/field-text.ts';
import { Icon } from '../../parts/icon/icon.tsx';
import { toast } from '../../parts/toast.tsx';
import { Card, Outcome, useAction } from '../../parts.tsx';
import { useMember } from '../../session.ts';
import { useTexts } from '../../texts.ts';
import { RejectedRows } from '../contacts/import-counts.tsx';
import { type Reputation, timesOf } from './providers.tsx';

type Imported = Extract<DataOf<'/web-setup/reputation/spam-rates', 'post'>, { rows: number }>;

interface SpamRatesProps {
  reputation: Reputation;
  /** Null: all. */
  provider: string | null;
  /** Our counts. */
  days: Reputation['total']['days'];
  onChanged: () => void;
}

/** Colors of the providers that state rates; further ones begin again. */
const COLORS = ['--c-opened', '--c-clicked', '--c-deferred', '--c-delivered'] as const;

/** The spam rates that providers state, next to the complaints that arrived here. */
export function SpamRates({ reputation, provider, days, onChanged }: SpamRatesProps) {
  const { t } = useTexts();
  const { may } = useMember();
  const { from, to, spamRates } = reputation;
  const { times, lines, isEmpty } = useMemo(() => {
    const all = timesOf({ from, to });
    const own = new Map(days.map((day) => [day.date, day]));
    const dates = all.map((at) => new Date(at * 1000).toISOString().slice(0, 10));
    const stated = spamRates.filter((rate) => provider === null || rate.provider === provider);
    const names = [...new Set(stated.map((rate) => rate.provider))];
    return {
      times: all,
      isEmpty: stated.length === 0,
      lines: [
        {
          label: t('reputation.rates.own'),
          color: '--c-complained',
          values: dates.map((date) => shareOf(own.get(date))),
        },
        ...names.map((name, index) => ({
          label: t('reputation.rates.stated', { provider: name }),
          color: COLORS[index % COLORS.length] ?? COLORS[0],
          values: dates.map((date) => highest(stated, name, date)),
        })),
      ],
    };
  }, [from, to, days, spamRates, provider, t]);
  return (
    <Card
      title={t('reputation.rates')}
      {...(may('createSpamRate') ? { action: <Addition onChanged={onChanged} /> } : {})}
    >
      {isEmpty ? (
        <p class="all-well">{t('reputation.rates.hint')}</p>
      ) : (
        <div class="card-body reputation-rates">
          <Chart label={t('reports.byDay')} times={times} unit="day" lines={lines} isShare />
        </div>
      )}
    </Card>
  );
}

/** The complaints of a day; null: nothing was delivered. */
function shareOf(day: { delivered: number; complained: number } | undefined): number | null {
  return day === undefined || day.delivered === 0 ? null : day.complained / day.delivered;
}

/** The highest rate of a provider and day: it may state one for each domain and address. */
function highest(rates: Reputation['spamRates'], provider: string, date: string): number | null {
  const found = rates.filter((each) => each.provider === provider && each.day === date);
  return found.length === 0 ? null : Math.max(...found.map(({ rate }) => rate));
}

/** Providers that show rates to senders. */
const STATING = ['Google', 'Microsoft', 'Yahoo'];

/** Enters a rate, or imports a file of rates. */
function Addition({ onChanged }: { onChanged: () => void }) {
  const { t } = useTexts();
  return (
    <Drawer
      title={t('reputation.rates.add')}
      buttonClass="button"
      button={
        <>
          <Icon name="plus" />
          {t('reputation.rates.add')}
        </>
      }
    >
      {(close) => (
        <>
          <RateForm
            onAdded={() => {
              close();
              onChanged();
              toast(t('reputation.rates.saved'));
            }}
          />
          <FileForm onChanged={onChanged} />
        </>
      )}
    </Drawer>
  );
}

function RateForm({ onAdded }: { onAdded: () => void }) {
  const { t } = useTexts();
  const { accountId } = useMember();
  const { outcome, run } = useAction();
  const add = (form: HTMLFormElement) =>
    run(async () => {
      const fields = new FormData(form);
      const about = fieldText(fields, 'about').trim();
      const of = /^[\d.]+$|:/.test(about) ? { address: about } : { domain: about };
      const body = {
        ...of,
        provider: fieldText(fields, 'provider'),
        day: fieldText(fields, 'day'),
        rate: Number(fieldText(fields, 'rate')) / 100,
      };
      await operate('post', '/web-setup/reputation/spam-rates', { account: accountId, parameters: {}, body });
      onAdded();
      return '';
    });
  return (
    <form
      aria-label={t('reputation.rates.add')}
      onSubmit={(event) => {
        event.preventDefault();
        void add(event.currentTarget);
      }}
    >
      <label class="field">
        {t('overview.provider')}
        <select class="select" name="provider">
          {STATING.map((name) => (
            <option value={name} key={name}>
              {name}
            </option>
          ))}
        </select>
      </label>
      <label class="field">
        {t('reputation.rates.about')}
        <input class="input" name="about" required maxLength={253} autocomplete="off" autocapitalize="none" />
      </label>
      <label class="field">
        {t('reports.day')}
        <input class="input" name="day" type="date" required max={new Date().toISOString().slice(0, 10)} />
      </label>
      <Field label={t('reputation.rates.rate')} hint={t('reputation.rates.rate.hint')}>
        {(control) => (
          <input {...control} class="input" name="rate" type="number" required min={0} max={100} step="any" />
        )}
      </Field>
      <div class="actions">
        <Button type="submit" kind="primary" label={t('app.views.save')} isBusy={outcome?.running === true} />
      </div>
      <Outcome of={outcome} />
    </form>
  );
}

function FileForm({ onChanged }: { onChanged: () => void }) {
  const { t } = useTexts();
  const { accountId } = useMember();
  const { outcome, run } = useAction();
  const [result, setResult] = useState<Imported | null>(null);
  const abort = useRef(new AbortController());
  const upload = (form: HTMLFormElement) =>
    run(async () => {
      const fields = new FormData(form);
      const file = fields.get('file');
      if (!(file instanceof File)) return '';
      const domain = fieldText(fields, 'domain').trim();
      const done = await uploadFile('/web-setup/reputation/spam-rates', {
        parameters: domain === '' ? {} : { domain },
        type: 'text/csv',
        file,
        account: accountId,
        signal: abort.current.signal,
        onProgress: () => {},
      });
      if (!('rows' in done)) return '';
      setResult(done);
      onChanged();
      return t('suppressions.import.done', { count: done.rows - done.rejected, total: done.rows });
    });
  return (
    <form
      aria-label={t('reputation.rates.file')}
      onSubmit={(event) => {
        event.preventDefault();
        void upload(event.currentTarget);
      }}
    >
      <h3>{t('reputation.rates.file')}</h3>
      <p class="small">{t('reputation.rates.file.hint')}</p>
      <FileField label={t('contacts.import.file')} name="file" accept=".csv,text/csv" isRequired />
      <Field label={t('messages.domain')} hint={t('reputation.rates.file.domain')} isOptional>
        {(control) => (
          <input
            {...control}
            class="input"
            name="domain"
            maxLength={253}
            autocomplete="off"
            autocapitalize="none"
          />
        )}
      </Field>
      <div class="actions">
        <Button type="submit" label={t('contacts.import.now')} isBusy={outcome?.running === true} />
      </div>
      <Outcome of={outcome} />
      {result !== null && <RejectedRows of={result} />}
    </form>
  );
}
