import { useTexts } from '../texts.ts';
import { MenuChoice } from './filter-bar.tsx';
import { Icon } from './icon/icon.tsx';
import { Popover } from './popover.tsx';
import './date-range.css';

/** Periods that end now, in hours. */
const PERIODS = { '24h': 24, '7d': 7 * 24, '30d': 30 * 24 } as const;
const PERIOD_NAMES = ['24h', '7d', '30d'] as const;
type Period = (typeof PERIOD_NAMES)[number];
const HOUR_MS = 3_600_000;

/**
 * The period of a list in its address: one that ends now (`period`), or times in ISO 8601, of which `to` is excluded.
 * An address with a `period`, such as that of a saved view, moves with the time.
 */
export interface DateRange {
  period?: string | undefined;
  from?: string | undefined;
  to?: string | undefined;
}

function periodOf(name: string | undefined): Period | undefined {
  return PERIOD_NAMES.find((each) => each === name);
}

/** The times of a period for a request. Those of one that ends now are in whole hours: the request remains the same for a while. */
export function timesOf({ period, from, to }: DateRange): Pick<DateRange, 'from' | 'to'> {
  const name = periodOf(period);
  if (name === undefined) return { from, to };
  const at = (Math.floor(Date.now() / HOUR_MS) - PERIODS[name]) * HOUR_MS;
  return { from: new Date(at).toISOString(), to: undefined };
}

/** What the period is in words; null: none. */
export function useRangeText({ period, from, to }: DateRange): string | null {
  const { t, locale } = useTexts();
  const name = periodOf(period);
  if (name !== undefined) return t(`app.period.${name}`);
  const first = momentOf(from, locale, 0);
  // The last day is before the end.
  const last = momentOf(to, locale, 1);
  if (first !== null && last !== null)
    return first === last ? first : t('app.period.between', { from: first, to: last });
  if (first !== null) return t('app.period.since', { from: first });
  return last === null ? null : t('app.period.until', { to: last });
}

/** A day if the time is a midnight, otherwise the time. `excluded`: 1 for the end of a period. */
function momentOf(iso: string | undefined, locale: string, excluded: 0 | 1): string | null {
  const time = Date.parse(iso ?? '');
  if (Number.isNaN(time)) return null;
  const isDay = new Date(time).getHours() === 0 && new Date(time).getMinutes() === 0;
  const format = new Intl.DateTimeFormat(locale, {
    dateStyle: 'medium',
    ...(isDay ? {} : { timeStyle: 'short' }),
  });
  return format.format(isDay ? time - excluded : time);
}

/** The value of a `date` field for a time, in the time zone of the browser. */
function dayOf(iso: string | undefined, excluded: 0 | 1): string {
  const time = Date.parse(iso ?? '');
  if (Number.isNaN(time)) return '';
  const day = new Date(time - excluded);
  return [day.getFullYear(), day.getMonth() + 1, day.getDate()]
    .map((part) => String(part).padStart(2, '0'))
    .join('-');
}

/** The begin of a day, or of the day after it, in the time zone of the browser; undefined without one. */
function beginOf(day: FormDataEntryValue | null, daysLater: 0 | 1): string | undefined {
  const parts = typeof day === 'string' ? /^(\d{4,6})-(\d\d)-(\d\d)$/.exec(day) : null;
  if (parts === null) return undefined;
  const [, year, month, date] = parts.map(Number);
  return new Date(year ?? 0, (month ?? 1) - 1, (date ?? 1) + daysLater).toISOString();
}

interface DateRangeFilterProps {
  chosen: DateRange;
  onChange: (range: Required<DateRange>) => void;
}

/** A filter by a period: one that ends now, or days. */
export function DateRangeFilter({ chosen, onChange }: DateRangeFilterProps) {
  const { t } = useTexts();
  return (
    <Popover
      buttonClass="button"
      popoverClass="date-range"
      button={
        <>
          {t('app.period')}
          <Icon name="chevron-down" />
        </>
      }
    >
      {(close) => {
        const choose = (range: DateRange) => {
          close();
          onChange({ period: undefined, from: undefined, to: undefined, ...range });
        };
        const isAny = chosen.period === undefined && chosen.from === undefined && chosen.to === undefined;
        return (
          <>
            <MenuChoice name={t('app.period.any')} isChosen={isAny} onChoose={() => choose({})} />
            {PERIOD_NAMES.map((period) => (
              <MenuChoice
                key={period}
                name={t(`app.period.${period}`)}
                isChosen={chosen.period === period}
                onChoose={() => choose({ period })}
              />
            ))}
            <form
              onSubmit={(event) => {
                event.preventDefault();
                const days = new FormData(event.currentTarget);
                const [one, other] = [days.get('first'), days.get('last')];
                // Days in the wrong order are the same period.
                const isSwapped =
                  typeof one === 'string' && typeof other === 'string' && other !== '' && one > other;
                choose({
                  from: beginOf(isSwapped ? other : one, 0),
                  to: beginOf(isSwapped ? one : other, 1),
                });
              }}
            >
              <label class="field">
                {t('app.period.from')}
                <input class="input" type="date" name="first" defaultValue={dayOf(chosen.from, 0)} />
              </label>
              <label class="field">
                {t('app.period.to')}
                <input class="input" type="date" name="last" defaultValue={dayOf(chosen.to, 1)} />
              </label>
              <button class="button primary" type="submit">
                {t('app.filters.apply')}
              </button>
            </form>
          </>
        );
      }}
    </Popover>
  );
}
