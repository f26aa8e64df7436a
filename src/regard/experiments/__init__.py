"""Several trainings or several models for one purpose: compare, tune, distill, back-translate, average."""
