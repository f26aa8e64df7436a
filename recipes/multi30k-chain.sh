#!/usr/bin/env bash
# Multi30k, English -> German, from the captions to the Transformer of 2.6M parameters with the best score on the test set
# (docs/results.md, models 18 to 35). About four and a half hours on two cores; two models are trained side by side where they can be.
#
#   recipes/multi30k-chain.sh FOLDER_WITH_CAPTIONS RUNS          e.g. data/multi30k/tok runs/chain
#
# What is done is not done again: after a stop the same command goes on. A model differs from the one of the page where minutes
# ended its training, and the one from fresh weights, which was stopped and begun anew on the page, learns here in one go.
set -euo pipefail

if [ $# -ne 2 ] || [ ! -e "$1/train.en.gz" ]; then
  echo "usage: recipes/multi30k-chain.sh FOLDER_WITH_CAPTIONS RUNS (the folder holds train, val and test_2016_flickr, .en.gz and .de.gz)" >&2
  exit 2
fi
captions=$(realpath "$1")
mkdir -p "$2"
recipes=$(realpath "$(dirname "$0")")
export PATH=$recipes/../.venv/bin:$PATH
cd "$2"

# once NAME COMMAND...: what the command prints goes to NAME.log
once() {
  local name=$1
  shift
  [ -e "$name.done" ] && return
  echo "$(date +%T) $name"
  if ! "$@" >>"$name.log" 2>&1; then
    echo "$name did not come to its end: see $PWD/$name.log" >&2
    return 1
  fi
  touch "$name.done"
}

# Waits for all that run; one that does not come to its end is the end of the chain.
side_by_side() {
  local failed=0
  for job in $(jobs -p); do wait "$job" || failed=1; done
  return $failed
}

table() { awk -F'\t' 'NF==2 && $1!="" && $2!="" && !seen[$0]++' "$@"; } # pairs, each once

learn() { # NAME DATA OPTIONS...: one core
  local name=$1
  shift
  once "$name" regard train "$@" --to "$name" --threads 1
}

taught() { # NAME DATA TEACHER OTHER OPTIONS...: one core, by the probabilities of two
  local name=$1 data=$2 teacher=$3 other=$4
  shift 4
  once "$name" regard distill "$teacher" --with "$other" "$data" --valid val.en val.de --true-only --to "$name" --threads 1 \
    --recipe "$recipes/multi30k-diverse.toml" "$@"
}

risk() { # NAME START SEED RATE OPTIONS...: minimum risk, one core
  local name=$1 start=$2 seed=$3 rate=$4
  shift 4
  once "$name" regard train pairs.tsv --from "$start" --to "$name" --threads 1 --seed "$seed" --set train.rate="$rate" \
    --recipe "$recipes/multi30k-risk.toml" "$@"
}

every() { echo --set train.validate_steps="$1" --set train.checkpoint_steps="$1"; }

for language in en de; do
  for part in train val test_2016_flickr; do zcat "$captions/$part.$language.gz" >"$part.$language"; done
  # Odd captions choose; even ones are asked once, at the end.
  awk 'NR%2==1' "val.$language" >"choose.$language"
  awk 'NR%2==0' "val.$language" >"confirm.$language"
done
paste train.en train.de >true.tsv
relative=$recipes/multi30k-relative.toml

# 18, and a model of the other direction, which says every German caption in five English ways.
learn first train.en train.de --valid val.en val.de --recipe "$relative" --seed 1 &
learn back train.de train.en --valid val.de val.en --recipe "$relative" --seed 1 --steps 1800 &
side_by_side
once likeliest regard back-translate back train.de --to likeliest.tsv --beam 5 --processes 2
for n in 1 2 3; do
  once drawn$n regard back-translate back train.de --to drawn$n.tsv --sample --top-k 10 --seed $n --processes 2
done
table true.tsv likeliest.tsv drawn[123].tsv >more.tsv
table true.tsv likeliest.tsv drawn[12].tsv >some.tsv
table true.tsv likeliest.tsv >pairs.tsv

# 19, and convolutions, on all of it.
learn second more.tsv --valid val.en val.de --words-of first --recipe "$relative" --seed 2 --steps 3300 &
learn conv more.tsv --valid val.en val.de --words-of first --recipe "$recipes/multi30k-conv.toml" --seed 2 --max-minutes 36 &
side_by_side

# 20 and 21: the first two teach each other.
taught a some.tsv second first --from second --seed 11 --steps 2400 $(every 400) &
taught b some.tsv second first --from first --seed 12 --steps 2400 $(every 400) &
side_by_side
head -n 13000 train.en >some.en
once written regard translate a --with b --input some.en --output written.de --beam 5 --length-penalty 1 --processes 2
paste some.en written.de >written.tsv
table true.tsv likeliest.tsv written.tsv >clean.tsv
table more.tsv written.tsv >all.tsv

# 22 to 24: the better of them goes on twice, and the mean of both.
taught c clean.tsv a b --from a --seed 21 --steps 1900 --set train.rate=1.5e-3 --set train.metric=loss $(every 475) &
taught d clean.tsv a b --from a --seed 22 --steps 1900 --set train.rate=1.5e-3 --set train.metric=loss $(every 475) &
side_by_side
once cd regard average c d --to cd

# 25 to 27: minimum risk, and the mean.
risk risk1 cd 1 2e-4 --valid val.en val.de --steps 500 --max-minutes 9.5 $(every 125) &
risk risk2 cd 2 4e-4 --valid val.en val.de --steps 500 --max-minutes 9.5 $(every 125) &
side_by_side
once risks regard average risk1 risk2 --to risks

# 28 and 29: two more teachers, as unlike as can be.
taught conv2 clean.tsv cd b --from conv --seed 31 --steps 2400 --set train.metric=loss $(every 600) &
taught b2 clean.tsv cd b --from b --seed 32 --steps 1900 --set train.rate=1.5e-3 --set train.metric=loss $(every 475) &
side_by_side

# 30: fresh weights learn from all three, on both cores.
once fresh regard distill risks --with b2 --with conv2 all.tsv --valid choose.en choose.de --true-only --to fresh --threads 2 \
  --recipe "$recipes/multi30k-diverse.toml" --seed 41 --steps 6300 --max-minutes 95 --set model.positions=relative \
  --set train.rate=3e-3 --set train.warm_up=300 --set train.metric=loss --set train.validate_steps=1000 \
  --set train.checkpoint_steps=500 --set train.validate_sentences=507

# 31 to 35: minimum risk four times, and the mean.
halves="--valid choose.en choose.de --steps 350 --max-minutes 12 --set train.validate_sentences=507 $(every 70)"
risk risk3 fresh 1 2e-4 $halves &
risk risk4 fresh 2 4e-4 $halves &
side_by_side
risk risk5 fresh 3 2e-4 $halves &
risk risk6 fresh 4 4e-4 $halves &
side_by_side
once best regard average risk3 risk4 risk5 risk6 --to best

for part in confirm val test_2016_flickr; do
  echo "== $part"
  regard score best $part.en $part.de --beam 5 --length-penalty 1 --tokenize none
done
