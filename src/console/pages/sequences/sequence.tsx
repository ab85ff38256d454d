import { operate } from '../../api.ts';
import { useOperation, useRefresh } from '../../data.ts';
import { addressOf } from '../../operations.ts';
import { DeletionMenu } from '../../parts/deletion-menu.tsx';
import { Figure, FigureRow } from '../../parts/figures.tsx';
import { Icon } from '../../parts/icon/icon.tsx';
import { Pager } from '../../parts/pager.tsx';
import { Time } from '../../parts/time.tsx';
import { Card, Loaded, Notice, Outcome, Page, Skeleton, Status, Table, useAction } from '../../parts.tsx';
import { useNavigation } from '../../routing.ts';
import { useMember } from '../../session.ts';
import { useTexts } from '../../texts.ts';
import { kindOfStep, SEQUENCE, type Sequence, STEP_ICONS } from './model.ts';
import { SequenceEditor } from './sequence-editor.tsx';
import { useWords, type Words } from './words.ts';
import './sequences.css';

const PEOPLE = `${SEQUENCE}/people` as const;

/** A sequence: its steps with the people at each of them; with `edit`, its editor. `sequenceId` `new`: a new one. */
export function SequencePage({ sequenceId }: { sequenceId: string }) {
  return sequenceId === 'new' ? <SequenceEditor sequence={null} /> : <Existing sequenceId={sequenceId} />;
}

function Existing({ sequenceId }: { sequenceId: string }) {
  const { t } = useTexts();
  const { location } = useNavigation();
  const words = useWords();
  const data = useOperation(SEQUENCE, { sequenceId });
  const sequence = data.value?.sequence;
  const isEdited = location.query['edit'] !== undefined;
  useRefresh(data.reload, isEdited ? null : undefined);
  if (sequence === undefined && data.error === null) return <Skeleton />;
  if (sequence !== undefined && isEdited) return <SequenceEditor sequence={sequence} onSaved={data.reload} />;
  return (
    <Page
      title={sequence?.name ?? t('page.sequences')}
      chip={sequence !== undefined && <Status name={sequence.status} prefix="sequences.status" />}
      question={sequence === undefined ? undefined : words.trigger(sequence.trigger)}
      curl={addressOf(SEQUENCE, { sequenceId })}
      actions={sequence !== undefined && <Actions sequence={sequence} reload={data.reload} />}
    >
      <Loaded data={data}>
        {({ sequence: shown }) => (
          <>
            {shown.pausedReason !== null && (
              <Notice kind="bad" title={t('sequences.pausedReason')}>
                <p>{shown.pausedReason}</p>
                <p>{t('sequences.pausedReason.hint')}</p>
              </Notice>
            )}
            <Figures sequence={shown} />
            <Steps sequence={shown} words={words} />
            <People sequence={shown} words={words} />
          </>
        )}
      </Loaded>
    </Page>
  );
}

function Actions({ sequence, reload }: { sequence: Sequence; reload: () => void }) {
  const { t } = useTexts();
  const { href, go } = useNavigation();
  const { accountId, may } = useMember();
  const { outcome, run } = useAction();
  const { sequenceId, name, status } = sequence;
  const request = { account: accountId, parameters: { sequenceId } };
  const post = (verb: 'activate' | 'pause') =>
    run(async () => {
      await operate('post', `${SEQUENCE}/${verb}`, request);
      reload();
      return '';
    });
  const remove = () =>
    run(async () => {
      await operate('delete', SEQUENCE, request);
      go(href('sequences'), { discard: true });
      return '';
    });
  return (
    <>
      {outcome?.failed === true && <Outcome of={outcome} />}
      {may('patchSequence') && (
        <a class="button" href={href(`sequences/${encodeURIComponent(sequenceId)}`, { edit: '1' })}>
          {t('sequences.edit')}
        </a>
      )}
      {status === 'active' && may('pauseSequence') && (
        <button class="button" type="button" onClick={() => void post('pause')}>
          <Icon name="pause" />
          {t('sequences.pause')}
        </button>
      )}
      {status !== 'active' && may('activateSequence') && (
        <button class="button primary" type="button" onClick={() => void post('activate')}>
          <Icon name="play" />
          {t('sequences.activate')}
        </button>
      )}
      {may('deleteSequence') && (
        <DeletionMenu
          name={name}
          label={t('sequences.delete')}
          question={t('sequences.delete.confirm', { name })}
          remove={remove}
        />
      )}
    </>
  );
}

function Figures({ sequence: { people, stepCounts } }: { sequence: Sequence }) {
  const { t, number, percent } = useTexts();
  const sum = (name: 'sent' | 'delivered' | 'opened' | 'clicked') =>
    stepCounts.reduce((total, counts) => total + counts[name], 0);
  const ended = Object.values(people.ended).reduce((total, count) => total + count, 0);
  const { completed = 0, goal = 0 } = people.ended;
  const earlier = people.inEarlierVersions;
  return (
    <FigureRow>
      <Figure
        color="--accent"
        label={t('sequences.inProgress')}
        value={number(people.inProgress)}
        note={earlier === 0 ? '' : t('sequences.earlier', { count: earlier })}
      />
      <Figure
        color="--c-delivered"
        label={t('sequences.completed')}
        value={number(completed)}
        note={goal === 0 ? '' : t('sequences.goalReached', { count: number(goal) })}
      />
      <Figure
        color="--c-accepted"
        label={t('sequences.left')}
        value={number(ended - completed - goal)}
        note={t('sequences.left.hint')}
      />
      <Figure
        color="--c-opened"
        label={t('campaigns.count.uniqueOpened')}
        value={percent(sum('opened'), sum('delivered'))}
        note={t('campaigns.figure.messages', { count: sum('opened') })}
      />
      <Figure
        color="--c-clicked"
        label={t('campaigns.count.uniqueClicked')}
        value={percent(sum('clicked'), sum('delivered'))}
        note={t('campaigns.figure.messages', { count: sum('clicked') })}
      />
    </FigureRow>
  );
}

/** The steps one below the other, each with the people for whom it is the next one. */
function Steps({ sequence, words }: { sequence: Sequence; words: Words }) {
  const { t, number, plural, percent } = useTexts();
  const { href } = useNavigation();
  const { sequenceId, trigger, steps, stepCounts, goal } = sequence;
  const page = `sequences/${encodeURIComponent(sequenceId)}`;
  return (
    <Card title={t('sequences.steps')}>
      <ol class="sequence-steps">
        <li class="sequence-step">
          <span class="sequence-icon accent">
            <Icon name="play" />
          </span>
          <span class="sequence-text">
            <strong>{words.trigger(trigger)}</strong>
            {goal !== null && (
              <span class="small">{t('sequences.goalIs', { condition: words.condition(goal) })}</span>
            )}
          </span>
        </li>
        {steps.map((step, index) => {
          const counts = stepCounts[index];
          const kind = kindOfStep(step);
          const people = counts?.people ?? 0;
          const detail = words.detail(step);
          return (
            // The steps of a version do not change their places.
            <li class="sequence-step" key={String(index)}>
              <span class="sequence-icon">
                <Icon name={STEP_ICONS[kind]} />
              </span>
              <span class="sequence-text">
                <strong>{words.step(step)}</strong>
                {detail !== '' && <span class="small">{detail}</span>}
                {kind === 'send' && counts !== undefined && counts.sent > 0 && (
                  <span class="small sequence-counts">
                    <span>{t('sequences.sentCount', { count: number(counts.sent) })}</span>
                    <span>
                      {t('sequences.openedShare', { share: percent(counts.opened, counts.delivered) })}
                    </span>
                    <span>
                      {t('sequences.clickedShare', { share: percent(counts.clicked, counts.delivered) })}
                    </span>
                    {counts.skipped > 0 && (
                      <span class="bad">
                        {t('sequences.skippedCount', { count: number(counts.skipped) })}
                      </span>
                    )}
                  </span>
                )}
              </span>
              {people > 0 && (
                <a class="sequence-people" href={href(page, { step: String(index) })}>
                  {plural('sequences.waiting', people, {})}
                </a>
              )}
            </li>
          );
        })}
      </ol>
    </Card>
  );
}

/** The people in the sequence; with `step`, those who wait for it. */
function People({ sequence, words }: { sequence: Sequence; words: Words }) {
  const { t, named } = useTexts();
  const { location, href } = useNavigation();
  const { sequenceId, steps, version } = sequence;
  const { step, state, lastKey } = location.query;
  const page = `sequences/${encodeURIComponent(sequenceId)}`;
  const list = useOperation(PEOPLE, { sequenceId, step, state, lastKey, limit: 50 });
  const filters = [
    [t('sequences.people.all'), undefined],
    [t('sequences.people.active'), 'active'],
    [t('sequences.people.scheduled'), 'scheduled'],
    [t('sequences.people.ended'), 'ended'],
  ] as const;
  return (
    <Card
      title={t('sequences.people')}
      action={
        <nav class="segments sequence-filter" aria-label={t('sequences.people')}>
          {filters.map(([label, name]) => (
            <a
              class="segment"
              key={label}
              href={href(page, { state: name })}
              aria-current={step === undefined && state === name ? 'true' : undefined}
            >
              {label}
            </a>
          ))}
        </nav>
      }
    >
      {step !== undefined && (
        <p class="card-body">
          {t('sequences.people.at', { step: words.step(steps[Number(step)] ?? { end: true }) })}{' '}
          <a href={href(page, {})}>{t('sequences.people.all')}</a>
        </p>
      )}
      <Loaded data={list} isList>
        {({ people, nextKey }) => (
          <>
            {people.length === 0 ? (
              <p class="card-body">{t('sequences.people.none')}</p>
            ) : (
              <Table
                label={t('sequences.people')}
                isList
                heads={[
                  t('sequences.person'),
                  t('messages.status'),
                  t('sequences.nextStep'),
                  { text: t('sequences.due'), end: true },
                  { text: t('sequences.entered'), end: true },
                ]}
              >
                {people.map((person) => {
                  const next = person.version === version ? steps[person.step] : undefined;
                  return (
                    <tr key={`${person.contactIdentifier} ${person.enteredAt}`}>
                      <th scope="row">
                        <a href={href(`contacts/${encodeURIComponent(person.contactIdentifier)}`)}>
                          {person.email ?? person.contactIdentifier}
                        </a>
                      </th>
                      <td class="aside">
                        {person.reason !== null ? (
                          named('sequences.reason', person.reason)
                        ) : person.waitsFor !== null ? (
                          named('sequences.waits', person.waitsFor)
                        ) : (
                          <Status name={person.state} prefix="sequences.state" />
                        )}
                      </td>
                      <td class="second">
                        {person.state === 'ended'
                          ? '–'
                          : next === undefined
                            ? t('sequences.stepOf', { step: person.step + 1, version: person.version })
                            : words.step(next)}
                      </td>
                      <td>{person.dueAt === null ? '–' : <Time at={person.dueAt} />}</td>
                      <td class="when">
                        <Time at={person.enteredAt} />
                      </td>
                    </tr>
                  );
                })}
              </Table>
            )}
            <Pager path={page} filters={{ step, state }} nextKey={nextKey} />
          </>
        )}
      </Loaded>
    </Card>
  );
}
